"""Items to batches, and NumPy arrays to tensors."""

from __future__ import annotations

import facula

_TEXT = (str, bytes)


def _module_of(value):
    return type(value).__module__


def _is_sequence(value):
    from collections.abc import Sequence

    return isinstance(value, Sequence)


def _is_mapping(value):
    from collections.abc import Mapping

    return isinstance(value, Mapping)


def _is_namedtuple(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _same_mapping(template, pairs):
    """A mapping of the type of `template`; a dict when that type cannot be made."""
    from collections.abc import MutableMapping
    from copy import copy

    try:
        if isinstance(template, MutableMapping):
            clone = copy(template)
            clone.update(pairs)
            return clone
        return type(template)(pairs)
    except TypeError:
        return dict(pairs)


def _same_sequence(template, values):
    """A sequence of the type of `template`; a list when that type cannot be made."""
    try:
        return type(template)(values)
    except TypeError:
        return list(values)


def default_convert(data):
    """Turn NumPy arrays and numbers inside `data` into Tensors; the rest stays as it is."""
    if isinstance(data, facula.Tensor):
        return data
    if _module_of(data) == "numpy":
        if type(data).__name__ in ("ndarray", "memmap"):
            return data if data.dtype.kind in "SaUO" else facula.as_tensor(data)
        return facula.as_tensor(data)
    if _is_mapping(data):
        return _same_mapping(data, {k: default_convert(v) for k, v in data.items()})
    if _is_namedtuple(data):
        return type(data)(*(default_convert(d) for d in data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]
    if _is_sequence(data) and not isinstance(data, _TEXT):
        return _same_sequence(data, [default_convert(d) for d in data])
    return data


_BAD_TYPE = (
    "default_collate(): expected tensors, NumPy arrays, numbers, strings, mappings or "
    "sequences; found {}"
)


def collate(batch, *, collate_fn_map=None):
    """Join a list of items of one kind into a batch.

    Args:
        batch: list of Tensors, arrays, numbers, texts, mappings or sequences of these.
        collate_fn_map: dict from type to fn(batch, collate_fn_map=...), asked first.

    Returns:
        Tensors stacked along a new first dimension, in the structure of one item.

    Raises:
        TypeError: another kind of item.
        RuntimeError: sequences of different lengths.
    """
    first = batch[0]
    for kind, function in (collate_fn_map or {}).items():
        if isinstance(first, kind):
            return function(batch, collate_fn_map=collate_fn_map)
    leaf = _collate_leaf(first, batch)
    if leaf is not None:
        return leaf

    def again(items):
        return collate(items, collate_fn_map=collate_fn_map)

    if _is_mapping(first):
        return _same_mapping(first, {key: again([d[key] for d in batch]) for key in first})
    if _is_namedtuple(first):
        return type(first)(*(again(column) for column in zip(*batch, strict=False)))
    if not _is_sequence(first):
        raise TypeError(_BAD_TYPE.format(type(first)))
    if any(len(item) != len(first) for item in batch):
        raise RuntimeError("default_collate(): all samples must be sequences of the same length")
    columns = [again(column) for column in zip(*batch, strict=True)]
    return columns if isinstance(first, tuple) else _same_sequence(first, columns)


def _collate_leaf(first, batch):
    """The batch of tensors, arrays, numbers or texts; None for other items."""
    if isinstance(first, facula.Tensor):
        return facula.stack(batch, 0)
    if _module_of(first) == "numpy":
        if type(first).__name__ not in ("ndarray", "memmap"):
            return facula.as_tensor(batch)
        if first.dtype.kind in "SaUO":
            raise TypeError(_BAD_TYPE.format(first.dtype))
        return facula.stack([facula.as_tensor(item) for item in batch], 0)
    if isinstance(first, float):
        return facula.tensor(batch, dtype=facula.float64)
    if isinstance(first, int):
        return facula.tensor(batch)
    return batch if isinstance(first, _TEXT) else None


def default_collate(batch):
    """Join a list of items into a batch: tensors are stacked, numbers become a tensor.

    Example:
        >>> default_collate([(1, 0.5), (2, 1.5)])
        [tensor([1, 2]), tensor([0.5000, 1.5000], dtype=torch.float64)]
    """
    return collate(batch)
