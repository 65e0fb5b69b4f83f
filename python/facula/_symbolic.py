"""Symbolic numbers by name: facula's sizes are plain numbers, and nothing is one of these.

Programs ask `isinstance(n, torch.SymInt)` and call `sym_max` where n may be symbolic elsewhere; the
functions compute with the plain numbers that they are given.
"""

from __future__ import annotations

import math
import numbers


class _Symbolic:
    def __new__(cls, node=None):
        raise TypeError(f"{cls.__name__}: facula has no symbolic numbers; sizes are plain numbers")


class SymInt(_Symbolic):
    """A symbolic int, which nothing is."""


class SymFloat(_Symbolic):
    """A symbolic float, which nothing is."""


class SymBool(_Symbolic):
    """A symbolic bool, which nothing is."""


def sym_int(a):
    """The number towards zero, as an int."""
    return int(a)


def sym_float(a):
    """The number as a float."""
    return float(a)


def sym_not(a):
    """The opposite of a bool."""
    return not a


def sym_max(a, b):
    """The greater number; a float where either is one."""
    _check_numbers("sym_max", a, b)
    return _in_common(max(a, b), a, b)


def sym_min(a, b):
    """The smaller number; a float where either is one."""
    _check_numbers("sym_min", a, b)
    return _in_common(min(a, b), a, b)


def _check_numbers(op, *values):
    for value in values:
        # AssertionError is PyTorch's class for it.
        if not isinstance(value, numbers.Real):
            raise AssertionError(f"{op}(): expected numbers; got {type(value).__name__}")


def _in_common(value, a, b):
    return float(value) if isinstance(a, float) or isinstance(b, float) else value


def sym_sqrt(a):
    """The square root, as a float."""
    return math.sqrt(a)


def sym_sum(*args):
    """The sum of ints, given one by one or as one list."""
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        return sum(args[0])
    return sum(args)


def sym_ite(b, t, f):
    """`t` if `b`, else `f`.

    Raises:
        TypeError: `t` and `f` are of different types.
    """
    if type(t) is not type(f):
        raise TypeError(
            f"sym_ite(): expected two values of one type; got {type(t).__name__} and "
            f"{type(f).__name__}"
        )
    return t if b else f
