"""Graphs whose calls have one form."""

from __future__ import annotations

import operator

import facula
from facula.fx.interpreter import Transformer
from facula.fx.node import map_aggregate
from facula.fx.operator_schemas import create_type_hint, normalize_function, normalize_module
from facula.fx.proxy import Proxy

__all__ = ["NormalizeArgs", "NormalizeOperators"]


class NormalizeArgs(Transformer):
    """Gives calls the arguments that their signatures have, with defaults.

    Calls whose overload is not clear stay as they are.

    Args:
        module (GraphModule): the graph.
        normalize_to_only_use_kwargs (bool): whether all arguments go by keyword.

    Example:
        >>> gm = facula.fx.symbolic_trace(lambda x: facula.flatten(x))
        >>> [node.kwargs for node in NormalizeArgs(gm).transform().graph.nodes][1]
        {'input': x, 'start_dim': 0, 'end_dim': -1}
    """

    def __init__(self, module, normalize_to_only_use_kwargs=True):
        super().__init__(module)
        self.node_map = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n):
        """Run one step on proxies; its new node keeps its metadata and type."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)

        def type_of(value):
            return self.node_map[value].type if isinstance(value, Proxy) else type(value)

        if n.op == "call_function":
            kinds = create_type_hint(map_aggregate(n.args, lambda a: getattr(a, "type", type(a))))
            kinds = tuple(map_aggregate(args, type_of)) if kinds is not None else None
            named = {k: create_type_hint(map_aggregate(v, type_of)) for k, v in kwargs.items()}
            out = self.call_function(n.target, args, kwargs, kinds, named)
        else:
            out = super().run_node(n)
        if n.op != "output":
            self.node_map[out] = n
            out.node.meta, out.node.type = n.meta, n.type
        return out

    def call_function(self, target, args, kwargs, arg_types=None, kwarg_types=None):
        """The call of a function, in one form."""
        kinds = tuple(create_type_hint(kind) for kind in arg_types or ())
        if None in kinds or None in (kwarg_types or {}).values():
            kinds, kwarg_types = None, None
        try:
            made = normalize_function(
                target, args, kwargs, kinds, kwarg_types, self.normalize_to_only_use_kwargs
            )
        except RuntimeError:  # several overloads serve
            made = None
        args, kwargs = made or (args, kwargs)
        return super().call_function(target, args, kwargs)

    def call_module(self, target, args, kwargs):
        """The call of a module, in one form."""
        only = self.normalize_to_only_use_kwargs
        made = normalize_module(self.module, target, args, kwargs, only)
        args, kwargs = made or (args, kwargs)
        return super().call_module(target, args, kwargs)


class NormalizeOperators(Transformer):
    """Writes `facula.add(a, b)` and its like as operators of Python.

    Args:
        module (GraphModule): the graph.

    Example:
        >>> gm = facula.fx.symbolic_trace(lambda x, y: facula.mul(x, y))
        >>> "x * y" in NormalizeOperators(gm).transform().code
        True
    """

    binary_magic_method_remap = {
        facula.add: operator.add,
        facula.mul: operator.mul,
        facula.sub: operator.sub,
        facula.div: operator.truediv,
        facula.floor_divide: operator.floordiv,
        facula.remainder: operator.mod,
        facula.eq: operator.eq,
        facula.ne: operator.ne,
        facula.lt: operator.lt,
        facula.le: operator.le,
        facula.gt: operator.gt,
        facula.ge: operator.ge,
    }

    def call_function(self, target, args, kwargs):
        """The call of a function, as an operator where it is one."""
        if target in self.binary_magic_method_remap and len(args) == 2 and not kwargs:
            target = self.binary_magic_method_remap[target]
        return super().call_function(target, args, kwargs)
