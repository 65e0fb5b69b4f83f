"""Summaries of runs' parameters, curves of precision and recall, layouts, meshes and videos."""

from __future__ import annotations

import io
import json

import facula
from facula.utils.tensorboard import _encoding as enc

# The numbers of fields and kinds are those of tensorboard/plugins/hparams (plugin_data.proto,
# api.proto) and of google/protobuf/struct.proto.
_STRING, _FLOAT64 = 1, 3
_SUCCESS = 1


def hparams(hparam_dict=None, metric_dict=None, hparam_domain_discrete=None):
    """The three Summary messages (bytes) that tell of a run's parameters and results.

    Args:
        hparam_dict (dict): numbers, bools, texts or tensors of one element, by name; None is left
            out.
        metric_dict (dict): results by name; the numbers themselves are scalars of that name.
        hparam_domain_discrete (dict): lists of the values that a parameter may have, by name.

    Returns:
        tuple of bytes: the experiment, the start and the end of its session.

    Raises:
        TypeError: no dictionaries; a list whose items are not of its parameter's type.
        ValueError: a parameter of another type.
    """
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    domains = hparam_domain_discrete or {}
    if not isinstance(domains, dict):
        raise TypeError("parameter: hparam_domain_discrete should be a dictionary, nothing logged.")
    _check_domains(domains, hparam_dict)
    values = {name: _plain(value) for name, value in hparam_dict.items() if value is not None}
    infos = [_parameter(name, value, domains.get(name)) for name, value in values.items()]
    infos += [enc.block(5, enc.block(1, enc.block(2, name))) for name in metric_dict]
    start = [enc.block(1, enc.block(1, n) + enc.block(2, _value(v))) for n, v in values.items()]
    return (
        _summary("experiment", 2, b"".join(infos)),
        _summary("session_start_info", 3, b"".join(start)),
        _summary("session_end_info", 4, enc.integer(1, _SUCCESS)),
    )


def _check_domains(domains, parameters):
    for name, values in domains.items():
        fits = name in parameters and isinstance(values, list)
        if not fits or not all(isinstance(value, type(parameters[name])) for value in values):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type as "
                f"hparam_dict[{name}]."
            )


def _plain(value):
    """A parameter as float or text."""
    if isinstance(value, facula.Tensor):
        value = value.item()
    if isinstance(value, (bool, int, float)):
        return float(value)
    if isinstance(value, str):
        return value
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def _value(value):
    """A google.protobuf.Value."""
    return enc.block(3, value) if isinstance(value, str) else enc.double(2, value)


def _parameter(name, value, domain):
    """A field of an experiment: what one parameter is, and may be."""
    kind = _STRING if isinstance(value, str) else _FLOAT64
    info = enc.block(1, name) + enc.integer(4, kind)
    if domain is not None:
        info += enc.block(5, b"".join(enc.block(1, _value(_plain(one))) for one in domain))
    return enc.block(4, info)


def _summary(name, field, content):
    data = enc.block(1, "hparams") + enc.block(2, enc.block(field, content))
    return enc.block(1, enc.block(1, f"_hparams_/{name}") + enc.block(9, enc.block(1, data)))


# --- curves of precision and recall: tensorboard/plugins/pr_curve/plugin_data.proto

_LEAST = 1e-7  # what a count of nothing is divided by


def pr_curve(tag, labels, predictions, num_thresholds=127, weights=None):
    """The Summary message (bytes) of precision and recall at thresholds from 0 to 1.

    Args:
        tag (str): its name.
        labels (Tensor): whether each is a positive one: bool, or 0 and 1.
        predictions (Tensor): from 0 to 1, of the same shape.
        num_thresholds (int): how many.
        weights (Tensor or float, optional): of each.
    """
    places = (predictions.double().flatten() * (num_thresholds - 1)).floor().long()
    places = places.clamp(0, num_thresholds - 1)
    weight = facula.as_tensor(1.0 if weights is None else weights, dtype=facula.float64)
    hits = labels.double().flatten() * weight.flatten()
    misses = (1 - labels.double().flatten()) * weight.flatten()

    def at_least(amounts):
        empty = facula.zeros(num_thresholds, dtype=facula.float64)
        return empty.index_add(0, places, amounts).flip(0).cumsum(0).flip(0)

    true, false = at_least(hits), at_least(misses)
    missed, rejected = true[0] - true, false[0] - false
    precision = true / (true + false).clamp(min=_LEAST)
    recall = true / (true + missed).clamp(min=_LEAST)
    return pr_curve_raw(tag, true, false, rejected, missed, precision, recall, num_thresholds)


def pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds=127):
    """The same from counts, precision and recall at each threshold (sequences of numbers)."""
    rows = [[float(number) for number in row] for row in (tp, fp, tn, fn, precision, recall)]
    content = enc.block(8, enc.tensor((6, len(rows[0])), [x for row in rows for x in row]))
    return enc.value(tag, content, "pr_curves", enc.integer(2, min(num_thresholds, 127)))


# --- layouts of charts: tensorboard/plugins/custom_scalar/layout.proto


def custom_scalars(layout):
    """The Summary message (bytes) that says which scalars are drawn in one chart.

    Args:
        layout (dict): by category, a dict of charts by title; each is ["Multiline", tags] or
            ["Margin", [value, lower, upper]].

    Raises:
        ValueError: another kind of chart, or a margin without three tags.
    """
    categories = []
    for category, charts in layout.items():
        parts = [enc.block(2, _chart(title, *chart)) for title, chart in charts.items()]
        categories.append(enc.block(2, enc.block(1, category) + b"".join(parts)))
    text = enc.integer(1, 7) + enc.block(2, b"") + enc.block(8, b"".join(categories))
    return enc.value("custom_scalars__config__", enc.block(8, text), "custom_scalars")


def _chart(title, kind, tags):
    head = enc.block(1, title)
    if kind == "Multiline":
        return head + enc.block(2, b"".join(enc.block(1, tag) for tag in tags))
    if kind != "Margin" or len(tags) != 3:
        raise ValueError(
            "add_custom_scalars(): expected ['Multiline', tags] or ['Margin', [value, lower, "
            f"upper]]; got {[kind, tags]}"
        )
    series = b"".join(enc.block(i + 1, tag) for i, tag in enumerate(tags))
    return head + enc.block(3, enc.block(1, series))


# --- meshes: tensorboard/plugins/mesh/plugin_data.proto

_VERTEX, _FACE, _COLOR = 1, 2, 3


def mesh(tag, vertices, colors=None, faces=None, config_dict=None):
    """The Summary message (bytes) of points in space or a mesh.

    Args:
        tag (str): its name.
        vertices (Tensor): of shape (B, N, 3). colors (Tensor): the same, from 0 to 255.
        faces (Tensor): of shape (B, M, 3), the numbers of a triangle's vertices.
        config_dict (dict): what three.js is to be told.

    Raises:
        ValueError: another number of dimensions than three.
    """
    config = json.dumps(config_dict or {}, sort_keys=True)
    given = [(vertices, _VERTEX, "VERTEX"), (faces, _FACE, "FACE"), (colors, _COLOR, "COLOR")]
    given = [(tensor, *kind) for tensor, *kind in given if tensor is not None]
    components = sum(1 << number for _, number, _ in given)
    values = []
    for tensor, number, name in given:
        if tensor.ndim != 3:
            raise ValueError(
                f"add_mesh(): expected {name.lower()} data of shape (B, N, 3); "
                f"got {tuple(tensor.shape)}"
            )
        parts = [enc.block(2, tag), enc.integer(3, number), enc.block(5, config)]
        parts.append(enc.block(6, b"".join(enc.varint(size) for size in tensor.shape)))
        parts.append(enc.integer(7, components))
        content = enc.tensor(tuple(tensor.shape), tensor.float().flatten().tolist())
        values.append(enc.value(f"{tag}_{name}", enc.block(8, content), "mesh", b"".join(parts)))
    return b"".join(values)


# --- moving pictures


def _side_by_side(videos):
    """Videos in a grid of about as many rows as columns.

    Args:
        videos (Tensor): of shape (N, T, C, H, W).

    Returns:
        Tensor: of shape (T, rows * H, columns * W, C); empty places are zero.
    """
    count, frames, channels, height, width = videos.shape
    places = 1 << (count - 1).bit_length()
    empty = videos.new_zeros(places - count, frames, channels, height, width)
    rows = 1 << (count.bit_length() - 1) // 2
    columns = places // rows
    grid = facula.cat([videos, empty]).view(rows, columns, frames, channels, height, width)
    grid = grid.permute(2, 0, 4, 1, 5, 3)
    return grid.reshape(frames, rows * height, columns * width, channels)


def video(tag, tensor, fps=4):
    """The Summary message (bytes) of moving pictures, as a GIF (needs Pillow).

    Without Pillow a line says so, and the value is empty.

    Args:
        tag (str): its name.
        tensor (Tensor): of shape (N, T, C, H, W), C of 1 or 3: uint8, or floats from 0 to 1.
        fps (float): pictures a second.

    Raises:
        ValueError: another number of dimensions or of channels.
    """
    if tensor.ndim != 5 or tensor.shape[2] not in (1, 3):
        raise ValueError(
            f"add_video(): expected shape (N, T, C, H, W) with 1 or 3 channels; "
            f"got {tuple(tensor.shape)}"
        )
    if tensor.dtype != facula.uint8:
        tensor = (tensor.float() * 255).clamp(0, 255).to(facula.uint8)
    frames = _side_by_side(tensor)
    try:
        from PIL import Image
    except ImportError:
        print("add_video(): the package pillow is needed to write a GIF, and is missing")
        return enc.block(1, enc.block(1, tag))
    _, height, width, channels = frames.shape
    mode = "L" if channels == 1 else "RGB"
    made = [
        Image.frombytes(mode, (width, height), bytes(frame.contiguous().flatten().tolist()))
        for frame in frames
    ]
    file = io.BytesIO()
    made[0].save(
        file,
        "GIF",
        save_all=True,
        append_images=made[1:],
        duration=round(1000 / fps),
        loop=0,
    )
    parts = (enc.integer(1, height), enc.integer(2, width), enc.integer(3, channels))
    return enc.value(tag, enc.block(4, b"".join(parts) + enc.block(4, file.getvalue())))
