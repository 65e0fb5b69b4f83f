"""visualize_sharding: a table of which rank has which part of a DTensor."""

from __future__ import annotations

import itertools

from facula.distributed.tensor._utils import local_shape_and_offset


def visualize_sharding(dtensor, header="", use_rich=False):
    """Print which ranks have which part of a DTensor of one or two dimensions.

    Args:
        dtensor (DTensor): the tensor.
        header (str): a line above the table.
        use_rich (bool): has no effect; the table is plain text.

    Raises:
        RuntimeError: the tensor has more than two dimensions.

    Example:
        >>> from facula.distributed.tensor import Shard, distribute_tensor
        >>> def work(rank):
        ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
        ...     x = distribute_tensor(facula.ones(4, 2), mesh, [Shard(0)])
        ...     facula.distributed.tensor.debug.visualize_sharding(x)
        >>> _ = facula.distributed.threads.run(work, 2)
                   columns 0-1
        rows 0-1   cpu:0
        rows 2-3   cpu:1
    """
    if dtensor.dim() > 2:
        raise RuntimeError(
            f"visualize_sharding(): expected one or two dimensions; got {dtensor.dim()}"
        )
    mesh = dtensor.device_mesh
    coordinate = mesh.get_coordinate()
    if dtensor.numel() == 0 or coordinate is None or any(coordinate):
        return  # one rank prints for all
    ranks = {}  # (rows, columns) -> the ranks that have them
    for at in itertools.product(*map(range, mesh.shape)):
        shape, offset = local_shape_and_offset(dtensor.shape, mesh.shape, at, dtensor.placements)
        block = [(o, o + n) for o, n in zip(offset, shape, strict=True)]
        block = [*[(0, 1)] * (2 - len(block)), *block]
        if all(begin < end for begin, end in block):
            ranks.setdefault(tuple(block), []).append(mesh.mesh[at].item())
    print(_table(ranks, mesh.device_type, header))


def _range(word, begin, end):
    return f"{word} {begin}-{end - 1}"


def _table(ranks, device_type, header):
    rows = sorted({r for r, _ in ranks})
    columns = sorted({c for _, c in ranks})
    cells = [["", *(_range("columns", *c) for c in columns)]]
    for r in rows:
        found = [ranks.get((r, c), []) for c in columns]
        cells.append(
            [_range("rows", *r), *(", ".join(f"{device_type}:{i}" for i in f) for f in found)]
        )
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    lines = [
        "   ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    return "\n".join([header, *lines] if header else lines)


__all__ = ["visualize_sharding"]
