"""In which dtype a decomposition computes, so that it rounds where the operator does."""

from __future__ import annotations

import functools

import facula
from facula.utils._pytree import tree_leaves, tree_map

_HALVES = (facula.float16, facula.bfloat16)


def computation_dtype(dtype):
    """float32 for half types, the dtype itself otherwise."""
    return facula.float32 if dtype in _HALVES else dtype


def rounds_once(function):
    """A decorator: half types are computed in float32, and the results rounded."""

    @functools.wraps(function)
    def run(*args, **kwargs):
        tensors = [a for a in tree_leaves((args, kwargs)) if isinstance(a, facula.Tensor)]
        halves = [t.dtype for t in tensors if t.dtype in _HALVES]
        if not halves:
            return function(*args, **kwargs)

        def wide(a):
            is_half = isinstance(a, facula.Tensor) and a.dtype in _HALVES
            return a.to(facula.float32) if is_half else a

        def narrow(a):
            is_float = isinstance(a, facula.Tensor) and a.dtype is facula.float32
            return a.to(halves[0]) if is_float else a

        return tree_map(narrow, function(*tree_map(wide, args), **tree_map(wide, kwargs)))

    return run
