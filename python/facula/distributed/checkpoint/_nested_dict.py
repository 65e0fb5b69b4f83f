"""Nested states as flat ones, whose keys are paths joined by dots."""

from __future__ import annotations

from collections.abc import Mapping

import facula

__all__ = ["flatten_state_dict", "set_element", "unflatten_state_dict"]


def _is_leaf(value):
    """Whether a list holds neither tensors nor mappings, so that it is kept whole."""
    for each in value:
        if isinstance(each, (Mapping, facula.Tensor)):
            return False
        if isinstance(each, list) and not _is_leaf(each):
            return False
    return True


def _walk(path, value, visit):
    if isinstance(value, Mapping):
        for key, each in value.items():
            _walk((*path, str(key)), each, visit)
    elif isinstance(value, list) and not _is_leaf(value):
        for i, each in enumerate(value):
            _walk((*path, i), each, visit)
    else:
        visit(path, value)


def flatten_state_dict(state_dict):
    """A nested state as a flat one.

    Args:
        state_dict (dict): of dicts, lists, tensors and whatever can be pickled.

    Returns:
        flat dict, dict from its keys to paths (tuples of str and int)

    Raises:
        ValueError: two paths have one key.

    Example:
        >>> flatten_state_dict({"a": {"b": 1, "c": [{"d": 2}]}})[0]
        {'a.b': 1, 'a.c.0.d': 2}
    """
    flat, paths = {}, {}

    def visit(path, value):
        key = ".".join(map(str, path))
        if key in flat:
            raise ValueError(f"flatten_state_dict(): {path} and {paths[key]} are both {key!r}")
        flat[key], paths[key] = value, path

    for key, value in state_dict.items():
        _walk((str(key),), value, visit)
    return flat, paths


def set_element(root, path, value):
    """Put a value into nested dicts and lists, making those that are missing.

    Args:
        root (dict): the outermost.
        path (tuple): keys of dicts (str; a number's text finds the number) and of lists (int).
        value: anything.
    """
    here = root
    for i, key in enumerate(path):
        key = _key_of(here, key)
        if i + 1 == len(path):
            _put(here, key, value)
            return
        empty = [] if isinstance(path[i + 1], int) else {}
        known = here.get(key) if isinstance(here, dict) else _item(here, key)
        if known is None:
            _put(here, key, empty)
            known = empty
        here = known


def _key_of(here, key):
    """The key that a dict has for a path's element: paths have texts of all keys."""
    if not isinstance(here, Mapping) or key in here:
        return key
    return next((known for known in here if str(known) == key), key)


def _item(items, index):
    return items[index] if index < len(items) else None


def _put(here, key, value):
    if isinstance(here, list):
        here.extend([None] * (key + 1 - len(here)))
    here[key] = value


def unflatten_state_dict(state_dict, mapping):
    """The nested state of a flat one.

    Args:
        state_dict (dict): the flat state.
        mapping (dict): from its keys to paths, as flatten_state_dict() gives them.

    Returns:
        dict
    """
    nested = {}
    for key, value in state_dict.items():
        set_element(nested, mapping[key], value)
    return nested
