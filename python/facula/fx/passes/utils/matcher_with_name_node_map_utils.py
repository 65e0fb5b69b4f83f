"""Patterns that give their nodes names."""

from __future__ import annotations

from facula.fx.passes.utils.matcher_utils import (
    SubgraphMatcher,
    _split_to_graph_and_name_node_map,
)

__all__ = ["SubgraphMatcherWithNameNodeMap"]


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """Finds a pattern whose function returns its results and, last, a dict of names of nodes.

    Args:
        pattern_gm (GraphModule): the pattern.
        match_output, match_placeholder, remove_overlapping_matches, ignore_literals (bool): as
            SubgraphMatcher has them.

    Raises:
        ValueError: the pattern returns no dict of names.

    Example:
        >>> def pattern(a, b):
        ...     total = a + b
        ...     return facula.relu(total), {"total": total}
        >>> trace = facula.fx.symbolic_trace
        >>> matcher = SubgraphMatcherWithNameNodeMap(trace(pattern))
        >>> graph = trace(lambda x, y: facula.relu(x + y)).graph
        >>> matcher.match(graph)[0].name_node_map
        {'total': add}
    """

    def __init__(
        self,
        pattern_gm,
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=False,
    ):
        graph, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(
            graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals
        )

    def match(self, graph, node_name_match=""):
        """The occurrences in a graph; each has `name_node_map`."""
        found = super().match(graph, node_name_match)
        for match in found:
            names = self.name_node_map.items()
            match.name_node_map = {name: match.nodes_map[node] for name, node in names}
        return found
