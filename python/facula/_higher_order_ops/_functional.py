"""Calls with functions among their arguments, where in-place changes are taken out of a program."""

from __future__ import annotations

import facula
from facula import _C
from facula.utils._pytree import tree_flatten, tree_map


def any_of(values):
    """Whether any tensor among nested values is one that functionalization has wrapped."""
    return any(_is_wrapped(leaf) for leaf in tree_flatten(values)[0])


def _is_wrapped(value):
    return isinstance(value, facula.Tensor) and _C._is_functional_tensor(value)


def unwrapped(value):
    """What functionalization has wrapped; another value as it is."""
    return _C._from_functional_tensor(value) if _is_wrapped(value) else value


def call(function, *args):
    """Call a function with the tensors that are wrapped, and wrap what it gives.

    Args:
        function (callable): gives a tuple or list of tensors and numbers.
        args: nested values.
    """
    results = function(*tree_map(unwrapped, args))
    tensors = [r for r in results if isinstance(r, facula.Tensor)]
    wrapped = iter(_C._to_functional_tensors(tensors))
    return [next(wrapped) if isinstance(r, facula.Tensor) else r for r in results]
