"""Symbolic numbers: sizes whose values a trace does not fix, and what is computed of them.

They exist while `export` runs a program with dynamic shapes; elsewhere sizes are plain numbers, and
the functions here compute with the plain numbers that they are given.
"""

from __future__ import annotations

import math
import numbers


class _Symbolic:
    """A number that is known by its node: an expression, and the environment of its symbols.

    Args:
        node: has `expr`, `binary(op, other, swapped)`, `compare(op, other)` and `fixed()`.
    """

    def __init__(self, node):
        if not hasattr(node, "expr"):
            raise TypeError(
                f"{type(self).__name__}(): expected the node of an expression; got "
                f"{type(node).__name__}"
            )
        self.node = node

    def __repr__(self):
        return str(self.node.expr)

    def __hash__(self):
        raise TypeError(f"unhashable type: {type(self).__name__}")


class SymInt(_Symbolic):
    """An int whose value a trace does not fix; `int()` fixes it."""

    def __int__(self):
        return self.node.fixed()

    def __index__(self):
        # Operators take it this way, and the trace knows the number again.
        return self.node.stand_in()

    def __float__(self):
        return float(self.node.fixed())

    def __bool__(self):
        return bool(self != 0)

    def __add__(self, other):
        return self.node.binary("+", other)

    def __radd__(self, other):
        return self.node.binary("+", other, True)

    def __sub__(self, other):
        return self.node.binary("-", other)

    def __rsub__(self, other):
        return self.node.binary("-", other, True)

    def __mul__(self, other):
        return self.node.binary("*", other)

    def __rmul__(self, other):
        return self.node.binary("*", other, True)

    def __floordiv__(self, other):
        return self.node.binary("//", other)

    def __rfloordiv__(self, other):
        return self.node.binary("//", other, True)

    def __mod__(self, other):
        return self.node.binary("%", other)

    def __rmod__(self, other):
        return self.node.binary("%", other, True)

    def __truediv__(self, other):
        return self.node.binary("/", other)

    def __rtruediv__(self, other):
        return self.node.binary("/", other, True)

    def __pow__(self, other):
        return self.node.binary("**", other)

    def __rpow__(self, other):
        return self.node.binary("**", other, True)

    def __neg__(self):
        return self.node.binary("*", -1)

    def __pos__(self):
        return self

    def __eq__(self, other):
        return self.node.compare("==", other)

    def __ne__(self, other):
        return self.node.compare("!=", other)

    def __lt__(self, other):
        return self.node.compare("<", other)

    def __le__(self, other):
        return self.node.compare("<=", other)

    def __gt__(self, other):
        return self.node.compare(">", other)

    def __ge__(self, other):
        return self.node.compare(">=", other)

    __hash__ = _Symbolic.__hash__


class SymFloat(_Symbolic):
    """A float whose value a trace does not fix; nothing makes one yet."""


class SymBool(_Symbolic):
    """A comparison of symbolic numbers; `bool()` decides it and notes what it relied on."""

    def __bool__(self):
        return self.node.decided()


def sym_int(a):
    """The number towards zero, as an int."""
    return a if isinstance(a, SymInt) else int(a)


def sym_float(a):
    """The number as a float."""
    return float(a)


def sym_not(a):
    """The opposite of a bool."""
    return a.node.opposite() if isinstance(a, SymBool) else not a


def sym_max(a, b):
    """The greater number; a float where either is one."""
    if isinstance(a, SymInt) or isinstance(b, SymInt):
        return _with_node("max", a, b)
    _check_numbers("sym_max", a, b)
    return _in_common(max(a, b), a, b)


def sym_min(a, b):
    """The smaller number; a float where either is one."""
    if isinstance(a, SymInt) or isinstance(b, SymInt):
        return _with_node("min", a, b)
    _check_numbers("sym_min", a, b)
    return _in_common(min(a, b), a, b)


def _with_node(op, a, b):
    if isinstance(a, SymInt):
        return a.node.binary(op, b)
    return b.node.binary(op, a, True)


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


for _function in (sym_int, sym_float, sym_max, sym_min, sym_not, sym_sqrt, sym_sum, sym_ite):
    _function.__module__ = __package__  # where graphs and files name them
