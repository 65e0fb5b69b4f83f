"""Steps that depend on parameters alone, computed once."""

from __future__ import annotations

import re

import facula
from facula import nn
from facula.fx._symbolic_trace import symbolic_trace
from facula.fx.graph import Graph
from facula.fx.graph_module import GraphModule
from facula.fx.node import map_arg

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A module whose constant steps are in a module of their own, which runs once.

    Args:
        root (Module): has what the steps name.
        graph (Graph): the other steps.
        const_subgraph (Graph): the constant steps.
        fx_const_folded_attrs_name (str): where their results are kept.
        device_for_folded_attrs (str): on which device.
    """

    def __init__(
        self,
        root,
        graph,
        const_subgraph=None,
        fx_const_folded_attrs_name=None,
        device_for_folded_attrs="cuda",
    ):
        super().__init__(root, graph)
        self.const_subgraph_module = None
        if const_subgraph is not None:
            self.const_subgraph_module = GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args, **kwargs):
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self):
        """Run the constant steps and keep their results."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("run_folding(): the constant steps must not have been run")
        self.has_folding_been_run = True
        results = self.const_subgraph_module()

        def kept(value):
            if not isinstance(value, facula.Tensor):
                return value
            return nn.Parameter(value.detach().clone(), requires_grad=value.requires_grad)

        value = (
            nn.ParameterList(map(kept, results)) if isinstance(results, tuple) else kept(results)
        )
        setattr(self, self.fx_const_folded_attrs_name, value)


def get_unique_attr_name_in_module(mod_traced, name):
    """A name that a module does not have yet, made of another.

    Args:
        mod_traced (Module): the module.
        name (str): the other name.
    """
    name = re.sub(r"[^0-9a-zA-Z_]+", "_", name)
    name = f"_{name}" if name[0].isdigit() else name
    while hasattr(mod_traced, name):
        match = re.fullmatch(r"(.*)_(\d+)", name)
        name = f"{match[1]}_{int(match[2]) + 1}" if match else f"{name}_1"
    return name


def split_const_subgraphs(
    module, skip_folding_node_fn=None, device_for_folded_attrs="cpu", is_impure_node=None
):
    """A module that computes what depends on parameters alone once.

    Args:
        module (Module | GraphModule): traced if it is no GraphModule.
        skip_folding_node_fn (callable): which constant steps are computed each time all the same.
        device_for_folded_attrs (str): where results are kept.
        is_impure_node (callable): which steps have effects; `Node.is_impure` if None.

    Returns:
        FoldedGraphModule

    Example:
        >>> class Scaled(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.a = nn.Parameter(facula.ones(2))
        ...     def forward(self, x):
        ...         return x * (self.a + 1)
        >>> [node.name for node in split_const_subgraphs(Scaled()).graph.nodes]
        ['x', '_fx_const_folded_attrs', 'mul', 'output']
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant_nodes(traced, skip_folding_node_fn, is_impure_node)
    given = [n for n in constant if any(u not in constant for u in n.users)]
    given = [n for n in given if n.op != "get_attr"]
    if not given:
        made = Graph()
        made.output(made.graph_copy(traced.graph, {}))
        return FoldedGraphModule(traced, made)
    folded = _copied(constant, given)
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    placeholder = nn.Parameter(facula.empty(0), requires_grad=False)
    single = len(given) == 1
    setattr(traced, name, placeholder if single else nn.ParameterList([placeholder] * len(given)))
    try:
        rest = _without(traced.graph, constant, given, name)
        return FoldedGraphModule(traced, rest, folded, name, device_for_folded_attrs)
    finally:
        delattr(traced, name)


def _constant_nodes(traced, skip, is_impure):
    found = {}
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output") or (skip is not None and skip(node)):
            continue
        impure = node.is_impure() if is_impure is None else is_impure(node)
        used = node.all_input_nodes
        is_fed = node.op == "get_attr" or (used and all(n in found for n in used))
        if is_fed and not impure:
            found[node] = None
    return found


def _copy(node, graph, values):
    args, kwargs = (map_arg(a, lambda n: values[n]) for a in (node.args, node.kwargs))
    made = graph.create_node(node.op, node.target, args, kwargs, type_expr=node.type)
    made.meta = dict(node.meta)
    return made


def _copied(constant, given):
    graph, values = Graph(), {}
    for node in constant:
        values[node] = _copy(node, graph, values)
    results = tuple(values[n] for n in given)
    graph.output(results[0] if len(results) == 1 else results)
    return graph


def _without(graph, constant, given, name):
    """A graph that reads the results of constant steps in the place of computing them."""
    import operator

    made, values = Graph(), {}
    kept = None
    for node in graph.nodes:
        if node in given:
            if kept is None:
                kept = made.get_attr(name)
            place = given.index(node)
            single = len(given) == 1
            values[node] = kept if single else made.call_function(operator.getitem, (kept, place))
        elif node not in constant or (
            node.op == "get_attr" and any(u not in constant for u in node.users)
        ):
            if node.op == "output":
                made.output(map_arg(node.args[0], lambda n: values[n]))
            else:
                values[node] = _copy(node, made, values)
    return made
