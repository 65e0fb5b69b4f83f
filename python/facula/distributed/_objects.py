"""Collectives on Python objects, which travel pickled.

Whoever unpickles runs what the sender wants: this is for processes that trust each other. With
weights_only objects travel as checkpoints do, and are read with `load`'s list of what may be named.
"""

from __future__ import annotations

import io
import pickle

import facula
from facula.distributed import _collectives as collectives
from facula.distributed._world import (
    _group_or_default,
    _rank_not_in_group,
    _ranks_of,
    _warn_not_in_group,
    get_world_size,
)

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]

_CHECKPOINT = b"PK"  # the beginning of what `save` writes; no pickle begins with it


def _object_to_tensor(obj, device=None, group=None, weights_only=False):
    """A pickled object as bytes, and their number; both are tensors."""
    if weights_only:
        # A plain pickle of a tensor names functions that could do anything; a checkpoint does not.
        file = io.BytesIO()
        facula.save(obj, file)
        data = bytearray(file.getvalue())
    else:
        data = bytearray(pickle.dumps(obj))
    tensor = facula.frombuffer(data, dtype=facula.uint8)
    return tensor, facula.tensor([tensor.numel()], dtype=facula.int64)


def _tensor_to_object(tensor, tensor_size, group=None, weights_only=False):
    """The object of `_object_to_tensor`."""
    data = bytes(tensor.cpu().contiguous().untyped_storage())[: int(tensor_size)]
    if weights_only or data.startswith(_CHECKPOINT):
        return facula.load(io.BytesIO(data), weights_only=weights_only)
    return pickle.loads(data)


def _padded(tensor, size, device):
    whole = facula.zeros(int(size), dtype=facula.uint8)
    whole[: tensor.numel()].copy_(tensor)
    return whole.to(device)


def _sizes_of_all(size, group, device):
    size = size.to(device)
    sizes = [facula.zeros_like(size) for _ in range(get_world_size(group))]
    collectives.all_gather(sizes, size, group=group)
    return [int(s) for s in sizes]


def all_gather_object(object_list, obj, group=None, weights_only=False):
    """Collect the objects of all ranks.

    Args:
        object_list (list): as long as there are ranks; is filled.
        obj (object): what this rank gives; can be pickled.
        group (ProcessGroup): default all ranks.
        weights_only (bool): take tensors, numbers, texts and containers alone, as `load` does.
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_object")
    tensor, size = _object_to_tensor(obj, weights_only=weights_only)
    device = _group_or_default(group)._object_device()
    sizes = _sizes_of_all(size, group, device)
    parts = [facula.empty(max(sizes), dtype=facula.uint8, device=device) for _ in sizes]
    collectives.all_gather(parts, _padded(tensor, max(sizes), device), group=group)
    for i, (part, n) in enumerate(zip(parts, sizes, strict=False)):
        object_list[i] = _tensor_to_object(part, n, weights_only=weights_only)


def gather_object(
    obj, object_gather_list=None, dst=None, group=None, group_dst=None, weights_only=False
):
    """Collect the objects of all ranks at one.

    Args:
        obj (object): what this rank gives; can be pickled.
        object_gather_list (list): at `dst` as long as there are ranks, and is filled.
        dst (int): a global rank; default 0.
        group (ProcessGroup): default all ranks.
        group_dst (int): a rank of the group, in place of `dst`.
        weights_only (bool): take tensors, numbers, texts and containers alone, as `load` does.
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather_object")
    pg = _group_or_default(group)
    dst = 0 if dst is None and group_dst is None else dst
    root = collectives._root(pg, dst, group_dst, "dst")
    is_root = pg.rank() == root
    collectives._check_root_list(
        "gather_object", "object_gather_list", object_gather_list, is_root, "destination"
    )
    tensor, size = _object_to_tensor(obj, weights_only=weights_only)
    device = _group_or_default(group)._object_device()
    sizes = _sizes_of_all(size, group, device)
    parts = (
        [facula.empty(max(sizes), dtype=facula.uint8, device=device) for _ in sizes]
        if is_root
        else None
    )
    collectives.gather(_padded(tensor, max(sizes), device), parts, group=group, group_dst=root)
    if is_root:
        for i, (part, n) in enumerate(zip(parts, sizes, strict=False)):
            object_gather_list[i] = _tensor_to_object(part, n, weights_only=weights_only)


def broadcast_object_list(
    object_list, src=None, group=None, device=None, group_src=None, weights_only=False
):
    """Copy the objects of one rank to all.

    Args:
        object_list (list): what `src` gives; is filled at the others.
        src (int): a global rank; default 0.
        group (ProcessGroup): default all ranks.
        device (device): where the bytes travel; default one that the group serves.
        group_src (int): a rank of the group, in place of `src`.
        weights_only (bool): take tensors, numbers, texts and containers alone, as `load` does.
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("broadcast_object_list")
    pg = _group_or_default(group)
    src = 0 if src is None and group_src is None else src
    root = collectives._root(pg, src, group_src, "src")
    device = device or pg._object_device()
    if pg.rank() == root:
        tensors, sizes = zip(
            *(_object_to_tensor(o, weights_only=weights_only) for o in object_list), strict=False
        )
        counts, data = facula.cat(sizes).to(device), facula.cat(tensors).to(device)
    else:
        counts = facula.empty(len(object_list), dtype=facula.int64, device=device)
    collectives.broadcast(counts, group=group, group_src=root)
    if pg.rank() != root:
        data = facula.empty(int(counts.sum()), dtype=facula.uint8, device=device)
    collectives.broadcast(data, group=group, group_src=root)
    if pg.rank() != root:
        _fill(object_list, data, counts, weights_only)


def _fill(object_list, data, counts, weights_only):
    for i, part in enumerate(data.split(counts.tolist())):
        object_list[i] = _tensor_to_object(part.clone(), part.numel(), weights_only=weights_only)


def scatter_object_list(
    scatter_object_output_list,
    scatter_object_input_list=None,
    src=None,
    group=None,
    group_src=None,
    weights_only=False,
):
    """Give each rank one of the objects of one rank.

    Args:
        scatter_object_output_list (list): its first element becomes the object.
        scatter_object_input_list (list): at `src` an object for each rank.
        src (int): a global rank; default 0.
        group (ProcessGroup): default all ranks.
        group_src (int): a rank of the group, in place of `src`.
        weights_only (bool): take tensors, numbers, texts and containers alone, as `load` does.
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter_object_list")
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("scatter_object_list(): expected an output list of at least one element")
    pg = _group_or_default(group)
    src = 0 if src is None and group_src is None else src
    root = collectives._root(pg, src, group_src, "src")
    device = pg._object_device()
    tensors, sizes, most = None, None, facula.zeros(1, dtype=facula.int64, device=device)
    if pg.rank() == root:
        pairs = [_object_to_tensor(o, weights_only=weights_only) for o in scatter_object_input_list]
        most = facula.cat([n for _, n in pairs]).max().reshape(1).to(device)
        tensors, sizes = (
            [_padded(t, most, device) for t, _ in pairs],
            [n.to(device) for _, n in pairs],
        )
    collectives.broadcast(most, group=group, group_src=root)
    part = facula.empty(int(most), dtype=facula.uint8, device=device)
    collectives.scatter(part, tensors, group=group, group_src=root)
    count = facula.zeros(1, dtype=facula.int64, device=device)
    collectives.scatter(count, sizes, group=group, group_src=root)
    scatter_object_output_list[0] = _tensor_to_object(part, count, weights_only=weights_only)


def send_object_list(
    object_list,
    dst=None,
    group=None,
    device=None,
    group_dst=None,
    use_batch=False,
    weights_only=False,
):
    """Send objects to a rank.

    Args:
        object_list (list): what is sent; can be pickled.
        dst (int): a global rank.
        group (ProcessGroup): default all ranks.
        device (device): where the bytes travel; default one that the group serves.
        group_dst (int): a rank of the group, in place of `dst`.
        use_batch (bool): has no effect.
        weights_only (bool): take tensors, numbers, texts and containers alone, as `load` does.
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("send_object_list")
    pg = _group_or_default(group)
    to = collectives._root(pg, dst, group_dst, "dst")
    tensors, sizes = zip(
        *(_object_to_tensor(o, weights_only=weights_only) for o in object_list), strict=False
    )
    device = device or pg._object_device()
    collectives.send(facula.cat(sizes).to(device), group=group, group_dst=to)
    collectives.send(facula.cat(tensors).to(device), group=group, group_dst=to)


def recv_object_list(
    object_list,
    src=None,
    group=None,
    device=None,
    group_src=None,
    use_batch=False,
    weights_only=False,
):
    """Receive objects.

    Args:
        object_list (list): as long as that of the sender; is filled.
        src (int): a global rank; default any.
        group (ProcessGroup): default all ranks.
        device (device): where the bytes travel; default one that the group serves.
        group_src (int): a rank of the group, in place of `src`.
        use_batch (bool): has no effect.
        weights_only (bool): take tensors, numbers, texts and containers alone, as `load` does.

    Returns:
        int: the global rank that they came from
    """
    if _rank_not_in_group(group):
        _warn_not_in_group("recv_object_list")
        return -1
    pg = _group_or_default(group)
    device = device or pg._object_device()
    counts = facula.empty(len(object_list), dtype=facula.int64, device=device)
    given = {} if src is None and group_src is None else {"src": src, "group_src": group_src}
    origin = collectives.recv(counts, group=group, **given)
    data = facula.empty(int(counts.sum()), dtype=facula.uint8, device=device)
    collectives.recv(data, group=group, group_src=_ranks_of(pg)[origin])
    _fill(object_list, data, counts, weights_only)
    return origin
