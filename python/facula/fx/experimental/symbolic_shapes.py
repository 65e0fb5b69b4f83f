"""Questions about sizes that might be symbolic: outside of traces facula's are plain numbers.

Packages ask these before they branch on a size. A plain number is known, has no symbols, and what
is asked of it is answered at once. Comparisons of symbolic ones exist while a program is traced.
"""

from __future__ import annotations

import facula
from facula._symbolic import SymBool

__all__ = [
    "GuardOnDataDependentSymNode",
    "canonicalize_bool_expr",
    "check_consistent",
    "constrain_range",
    "constrain_unify",
    "expect_true",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_bool",
    "guard_float",
    "guard_int",
    "guard_or_false",
    "guard_or_true",
    "guard_scalar",
    "guard_size_oblivious",
    "guarding_hint_or_throw",
    "has_free_symbols",
    "has_free_unbacked_symbols",
    "has_static_value",
    "has_symbolic_sizes_strides",
    "is_accessor_node",
    "is_concrete_bool",
    "is_concrete_float",
    "is_concrete_int",
    "is_nested_int",
    "is_symbol_binding_fx_node",
    "optimization_hint",
    "statically_known_false",
    "statically_known_true",
    "sym_and",
    "sym_eq",
    "sym_or",
]


class GuardOnDataDependentSymNode(RuntimeError):  # noqa: N818  (the name that packages catch)
    """A branch on a symbolic number whose value depends on data.

    Args:
        cond: the condition.
    """

    def __init__(self, cond=None, *args):
        super().__init__(*args)
        self.cond = cond


def _checked(op, value, *kinds):
    """A value of one of these classes; AssertionError, as PyTorch has it, for another."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise AssertionError(f"{op}(): expected {wanted}; got {type(value).__name__}")
    return value


def guard_bool(a):
    """The value of a condition.

    Args:
        a (bool): the condition.

    Raises:
        AssertionError: it is no bool.
    """
    return bool(_checked("guard_bool", a, bool, SymBool))


def guard_or_false(a):
    """The value of a condition; False only where a symbolic one could not be decided."""
    return _decided(_checked("guard_or_false", a, bool, SymBool), False)


def guard_or_true(a):
    """The value of a condition; True only where a symbolic one could not be decided."""
    return _decided(_checked("guard_or_true", a, bool, SymBool), True)


def _decided(condition, otherwise):
    """Whether a condition holds; the other value where only data would say so."""
    if not isinstance(condition, SymBool):
        return condition
    known = condition.node.known()
    if known is None and condition.node.has_data():
        return otherwise
    return bool(condition) if known is None else known


def guard_size_oblivious(expr):
    """The value of a condition."""
    return bool(_checked("guard_size_oblivious", expr, bool, SymBool))


def statically_known_true(x):
    """Whether a condition is known to hold."""
    return _known(_checked("statically_known_true", x, bool, SymBool)) is True


def _known(condition):
    return condition.node.known() if isinstance(condition, SymBool) else condition


def statically_known_false(x):
    """Whether a condition is known not to hold."""
    return _known(_checked("statically_known_false", x, bool, SymBool)) is False


def expect_true(a, skip=0):
    """The value of a condition that should hold.

    Args:
        a (bool): the condition.
        skip (int): has no effect.
    """
    _checked("expect_true", a, bool, SymBool)
    return a.node.expect() if isinstance(a, SymBool) else a


def guard_int(a):
    """The value of an int."""
    return _checked("guard_int", a, int)


def guard_float(a):
    """The value of a float."""
    return _checked("guard_float", a, float)


def guard_scalar(a):
    """The value of a number."""
    return _checked("guard_scalar", a, bool, int, float)


def optimization_hint(a, fallback=None):
    """The value of an int.

    Args:
        a (int): the number.
        fallback (int): is given where a symbolic one has no value.
    """
    return a


def guarding_hint_or_throw(a):
    """The value of a number."""
    return _checked("guarding_hint_or_throw", a, bool, int)


def has_static_value(a):
    """Whether a number is known: it is."""
    _checked("has_static_value", a, bool, int, float)
    return True


def is_concrete_int(a):
    """Whether an int is known: it is."""
    _checked("is_concrete_int", a, int, bool)
    return True


def is_concrete_float(a):
    """Whether a float is known: it is."""
    _checked("is_concrete_float", a, float, int)
    return True


def is_concrete_bool(a):
    """Whether a bool is known: it is."""
    _checked("is_concrete_bool", a, bool)
    return True


def is_nested_int(s):
    """Whether a number stands for sizes that differ from row to row: plain numbers do not."""
    return False


def free_symbols(val):
    """The symbols in the sizes of values: none, as a set.

    Args:
        val: tensors and numbers, nested.
    """
    return set()


def free_unbacked_symbols(x):
    """The symbols without a value in the sizes of values: none, as a set."""
    return set()


def has_free_symbols(val):
    """Whether the sizes of values have symbols: they do not."""
    return False


def has_free_unbacked_symbols(x):
    """Whether the sizes of values have symbols without a value: they do not."""
    return False


def has_symbolic_sizes_strides(elem):
    """Whether a tensor's sizes or strides are symbolic: they are not."""
    return False


def is_symbol_binding_fx_node(node):
    """The symbol that a step gives a value to: None."""
    return None


def is_accessor_node(node):
    """Whether a step reads a size, stride or storage offset.

    Args:
        node (Node): the step.
    """
    aten = facula.ops.aten
    readers = (
        aten.sym_size.default,
        aten.sym_size.int,
        aten.sym_stride.default,
        aten.sym_stride.int,
        aten.sym_storage_offset.default,
        aten.sym_numel.default,
    )
    if node.op == "call_function":
        return node.target in readers
    return node.op == "call_method" and node.target in ("size", "stride", "storage_offset", "item")


def canonicalize_bool_expr(expr):
    """A condition in one form: a plain one as it is."""
    return expr


def constrain_range(a, *, min, max=None):
    """Say between which numbers an int is; a plain one is checked.

    Args:
        a (int): the number.
        min (int | None), max (int | None): the bounds; None for none.

    Raises:
        ValueError: it is outside.
    """
    if (min is not None and a < min) or (max is not None and a > max):
        raise ValueError(f"constrain_range(): expected a number in [{min}, {max}]; got {a}")


def constrain_unify(a, b):
    """Say that two ints are equal; plain ones are checked.

    Raises:
        AssertionError: they are not.
    """
    if a != b:
        raise AssertionError(f"constrain_unify(): expected equal numbers; got {a} and {b}")


def check_consistent(new, old):
    """Check that a step gave again what it gave before: sizes of tensors, values of numbers.

    Args:
        new, old: the values.

    Raises:
        RuntimeError: they differ.
        AssertionError: they are of different kinds.
    """
    if isinstance(old, facula.Tensor) != isinstance(new, facula.Tensor):
        kinds = type(new).__name__, type(old).__name__
        raise AssertionError(f"check_consistent(): expected two values of a kind; got {kinds}")
    if isinstance(old, facula.Tensor):
        new, old = new.shape, old.shape
    if isinstance(old, (tuple, int, float)) and new != old:
        raise RuntimeError(f"check_consistent(): expected {old} again; got {new}")


def sym_and(x, *others):
    """Whether all conditions hold."""
    for other in others:
        x = x & other
    return x


def sym_or(x, *others):
    """Whether any condition holds."""
    for other in others:
        x = x | other
    return x


def sym_eq(x, y):
    """Whether two numbers, or two tuples or lists of them, are equal.

    Raises:
        AssertionError: they are no numbers.

    Example:
        >>> sym_eq((1, 2), (1, 3))
        False
    """
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        return len(x) == len(y) and all(map(sym_eq, x, y))
    for value in (x, y):
        _checked("sym_eq", value, bool, int, float)
    return x == y
