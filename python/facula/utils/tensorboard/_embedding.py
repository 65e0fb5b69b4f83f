"""What TensorBoard's projector reads: points, their labels and pictures, and a list of these."""

from __future__ import annotations

import math
import os

import facula


def write_tensors(matrix, folder):
    """Write points, a line each.

    Args:
        matrix (Tensor): of shape (N, D). folder (str).
    """
    rows = ("\t".join(map(str, row)) for row in matrix.tolist())
    _write(folder, "tensors.tsv", rows)


def write_metadata(metadata, folder, header=None):
    """Write the points' labels, a line each.

    Args:
        metadata (sequence): texts; sequences of texts where there is a header. folder (str).
        header (sequence of str): the columns' names.

    Raises:
        AssertionError: another number of columns than names.
    """
    if not header:
        _write(folder, "metadata.tsv", (str(label) for label in metadata))
        return
    if len(header) != len(metadata[0]):
        raise AssertionError(
            f"add_embedding(): expected a name in metadata_header for each of the "
            f"{len(metadata[0])} columns; got {len(header)}"
        )
    rows = ("\t".join(map(str, row)) for row in [header, *metadata])
    _write(folder, "metadata.tsv", rows)


def _write(folder, name, lines):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def sprite(pictures):
    """The points' pictures as one, square in pixels, row after row.

    Args:
        pictures (Tensor): of shape (N, 3, H, W): uint8, or floats from 0 to 1.

    Returns:
        Tensor: uint8, of shape (3, S, S).
    """
    if pictures.ndim != 4 or pictures.shape[1] != 3:
        raise AssertionError(
            f"add_embedding(): expected pictures of shape (N, 3, H, W); got {tuple(pictures.shape)}"
        )
    if pictures.dtype != facula.uint8:
        pictures = (pictures.float() * 255).clamp(0, 255).to(facula.uint8)
    count, _, height, width = pictures.shape
    side = math.ceil(math.sqrt(count))
    edge = max(side * width, side * height)
    whole = facula.zeros(3, edge, edge, dtype=facula.uint8)
    for i, picture in enumerate(pictures):
        row, column = divmod(i, side)
        top, left = row * height, column * width
        whole[:, top : top + height, left : left + width] = picture
    return whole


def config_entry(folder, tag, step, has_metadata, pictures):
    """The projector's entry for one set of points, in the text format of protocol buffers.

    Args:
        folder (str): of the points, in the writer's. tag, step (str): their name.
        has_metadata (bool). pictures (Tensor or None).
    """
    lines = [f'tensor_name: "{tag}:{step}"']
    if has_metadata:
        lines.append(f'metadata_path: "{folder}/metadata.tsv"')
    if pictures is not None:
        lines += ["sprite {", f'  image_path: "{folder}/sprite.png"']
        lines += [f"  single_image_dim: {size}" for size in (pictures.shape[3], pictures.shape[2])]
        lines.append("}")
    lines.append(f'tensor_path: "{folder}/tensors.tsv"')
    return "embeddings {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"
