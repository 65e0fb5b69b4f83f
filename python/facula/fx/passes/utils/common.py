"""Parts of graphs as modules, and whether two graphs are the same."""

from __future__ import annotations

from facula import nn
from facula.fx.graph_module import GraphModule, _assign_attr, _get_attr

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(nn.Module):
    """A module with given submodules.

    Args:
        d (dict[str, Module]): the submodules by name.
    """

    def __init__(self, d):
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(gm, subgraph, comp_name="", class_name="GraphModule"):
    """A module of a graph whose steps name what another module has.

    Args:
        gm (GraphModule): has it.
        subgraph (Graph): the graph.
        comp_name (str): where the new module is to stand; part of the second result's names.
        class_name (str): what it is called.

    Returns:
        tuple[GraphModule, dict[str, str]]: it, and by name in `comp_name` the name in `gm`.

    Example:
        >>> gm = facula.fx.symbolic_trace(facula.nn.Sequential(facula.nn.Linear(2, 3)))
        >>> lifted, names = lift_subgraph_as_module(gm, gm.graph, "part")
        >>> names
        {'part.0': '0'}
    """
    holder, names = HolderModule({}), {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        _assign_attr(_get_attr(gm, node.target), holder, node.target)
        names[f"{comp_name}.{node.target}"] = node.target
    return GraphModule(holder, subgraph, class_name), names


def compare_graphs(left, right):
    """Whether two graphs have the same steps in the same order.

    Args:
        left, right (Graph): the graphs; names may differ.

    Returns:
        bool
    """
    from facula.fx.passes.utils.matcher_utils import SubgraphMatcher

    matcher = SubgraphMatcher(left, match_output=True, match_placeholder=True)
    return len(left.nodes) == len(right.nodes) and len(matcher.match(right)) > 0
