"""Items to batches, and NumPy arrays to tensors."""

from __future__ import annotations

import re

import facula

_TEXT = (str, bytes)
# The kinds of NumPy's dtypes that no tensor has: texts and objects.
np_str_obj_array_pattern = re.compile("[SaUO]")


def _module_of(value):
    return type(value).__module__


def _is_text_or_object(array):
    return np_str_obj_array_pattern.search(array.dtype.str) is not None


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
        no_tensor = type(data).__name__ in ("ndarray", "memmap") and _is_text_or_object(data)
        return data if no_tensor else facula.as_tensor(data)
    if _is_mapping(data):
        return _same_mapping(data, {k: default_convert(v) for k, v in data.items()})
    if _is_namedtuple(data):
        return type(data)(*(default_convert(d) for d in data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]
    if _is_sequence(data) and not isinstance(data, _TEXT):
        return _same_sequence(data, [default_convert(d) for d in data])
    return data


default_collate_err_msg_format = (
    "default_collate(): expected tensors, NumPy arrays, numbers, strings, mappings or "
    "sequences; found {}"
)


def _collator(first, functions):
    """The function for items like `first`: of its very type, else of one it is an instance of."""
    if type(first) in functions:
        return functions[type(first)]
    for kind, function in functions.items():
        if isinstance(first, kind):
            return function
    return None


def collate(batch, *, collate_fn_map=None):
    """Join a list of items of one kind into a batch.

    Args:
        batch: list of items that the map knows, or mappings or sequences of these.
        collate_fn_map: dict from type, or tuple of types, to fn(batch, *, collate_fn_map=...).

    Returns:
        What the functions return, in the structure of one item.

    Raises:
        TypeError: another kind of item.
        RuntimeError: sequences of different lengths.
    """
    first = batch[0]
    if _module_of(first) == "numpy" and collate_fn_map is default_collate_fn_map:
        _know_numpy()
    if collate_fn_map is not None and (function := _collator(first, collate_fn_map)):
        return function(batch, collate_fn_map=collate_fn_map)

    def again(items):
        return collate(items, collate_fn_map=collate_fn_map)

    if _is_mapping(first):
        return _same_mapping(first, {key: again([d[key] for d in batch]) for key in first})
    if _is_namedtuple(first):
        return type(first)(*(again(column) for column in zip(*batch, strict=False)))
    if not _is_sequence(first):
        raise TypeError(default_collate_err_msg_format.format(type(first)))
    if any(len(item) != len(first) for item in batch):
        raise RuntimeError("default_collate(): all samples must be sequences of the same length")
    columns = [again(column) for column in zip(*batch, strict=True)]
    return columns if isinstance(first, tuple) else _same_sequence(first, columns)


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """Stack tensors along a new first dimension."""
    return facula.stack(batch, 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    """Stack arrays along a new first dimension; those of texts and objects raise TypeError."""
    if _is_text_or_object(batch[0]):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([facula.as_tensor(item) for item in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    """A tensor of NumPy's numbers."""
    return facula.as_tensor(batch)


def collate_float_fn(batch, *, collate_fn_map=None):
    """A float64 tensor of numbers."""
    return facula.tensor(batch, dtype=facula.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    """A tensor of whole numbers or truths."""
    return facula.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    """The list of texts as it is."""
    return batch


# Type, or types -> function(batch, *, collate_fn_map). Users add their own.
default_collate_fn_map = {
    facula.Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _know_numpy():
    """Put NumPy's types into the map, before Python's, of which they are subclasses."""
    import numpy

    if numpy.ndarray in default_collate_fn_map:
        return
    others = dict(default_collate_fn_map)
    default_collate_fn_map.clear()
    default_collate_fn_map[facula.Tensor] = others.pop(facula.Tensor, collate_tensor_fn)
    default_collate_fn_map[numpy.ndarray] = collate_numpy_array_fn
    scalars = (numpy.bool_, numpy.number, numpy.object_)
    default_collate_fn_map[scalars] = collate_numpy_scalar_fn
    default_collate_fn_map.update(others)


def default_collate(batch):
    """Join a list of items into a batch: tensors are stacked, numbers become a tensor.

    Example:
        >>> default_collate([(1, 0.5), (2, 1.5)])
        [tensor([1, 2]), tensor([0.5000, 1.5000], dtype=facula.float64)]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
