"""Tables of decompositions: operators as functions of simpler ones, for `make_fx` and compilers.

`facula._decomp.decompositions` holds the functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from facula import _C

__all__ = [
    "_should_decompose_because_unsafe_op",
    "core_aten_decompositions",
    "decomposition_table",
    "get_decompositions",
    "global_decomposition_table",
    "meta_table",
    "pre_autograd_decomposition_table",
    "register_decomposition",
    "remove_decompositions",
]

global_decomposition_table = {"post_autograd": {}, "pre_autograd": {}, "meta": {}}
decomposition_table = global_decomposition_table["post_autograd"]
pre_autograd_decomposition_table = global_decomposition_table["pre_autograd"]
meta_table = global_decomposition_table["meta"]

_unsafe = set()


def _overloads(op):
    """The overloads that an operator, a packet or a list of them stands for."""
    if isinstance(op, _C.OpOverloadPacket):
        return [getattr(op, name) for name in op.overloads()]
    if isinstance(op, (list, tuple, set)):
        return [one for each in op for one in _overloads(each)]
    return [op]


def register_decomposition(aten_op, registry=None, *, type="post_autograd", unsafe=False):
    """A decorator that puts a function into a table, for the operators it is a decomposition of.

    Args:
        aten_op (OpOverload | OpOverloadPacket | list of them): a packet stands for its overloads.
        registry (dict): the table; that of `type` if None.
        type (str): "post_autograd", "pre_autograd" or "meta".
        unsafe (bool): whether the operator is decomposed also where autograd would see it.

    Returns:
        callable: gives the function itself.

    Raises:
        RuntimeError: the table has the operator already.

    Example:
        >>> table = {}
        >>> @register_decomposition(facula.ops.aten.square.default, table)
        ... def square(x):
        ...     return x * x
        >>> table[facula.ops.aten.square.default] is square
        True
    """
    if type not in global_decomposition_table:
        raise AssertionError(
            f"register_decomposition(): expected type to be one of "
            f"{sorted(global_decomposition_table)}; got {type!r}"
        )
    table = global_decomposition_table[type] if registry is None else registry

    def register(function):
        for op in _overloads(aten_op):
            if op in table:
                raise RuntimeError(
                    f"register_decomposition(): expected an operator that the table lacks; got {op}"
                )
            table[op] = function
            if unsafe:
                _unsafe.add(op)
        return function

    return register


def _should_decompose_because_unsafe_op(op):
    """Whether an operator's decomposition was registered as `unsafe`."""
    return op in _unsafe


def get_decompositions(aten_ops: Sequence, type="post_autograd"):
    """The decompositions of operators, as a new table; what has none is left out.

    Args:
        aten_ops (sequence of OpOverload or OpOverloadPacket): what is asked for.
        type (str): the table: "post_autograd", "pre_autograd" or "meta".

    Returns:
        dict: OpOverload to a function.

    Example:
        >>> table = get_decompositions([facula.ops.aten.silu])
        >>> facula.ops.aten.silu.default in table
        True
    """
    if type not in global_decomposition_table:
        raise AssertionError(
            f"get_decompositions(): expected type to be one of "
            f"{sorted(global_decomposition_table)}; got {type!r}"
        )
    table = global_decomposition_table[type]
    return {op: table[op] for op in _overloads(list(aten_ops)) if op in table}


def remove_decompositions(decompositions, aten_ops):
    """Take operators out of a table, in place; what it lacks is passed over.

    Args:
        decompositions (dict): the table.
        aten_ops (sequence of OpOverload or OpOverloadPacket): what is taken out.
    """
    for op in _overloads(list(aten_ops)):
        decompositions.pop(op, None)


def core_aten_decompositions():
    """The decompositions that leave a program of core operators, as a new table.

    Example:
        >>> facula.ops.aten.silu.default in core_aten_decompositions()
        True
    """
    from facula._decomp.core import CORE

    return get_decompositions([op for name in CORE if (op := _packet(name)) is not None])


def _packet(name):
    import facula

    return getattr(facula.ops.aten, name, None)


import facula._decomp.decompositions  # noqa: E402, F401  (registers what it defines)
