"""Where the steps of a small graph, a pattern, occur in another graph."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import facula
from facula.fx.node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """One occurrence of a pattern.

    Attributes:
        anchors (list[Node]): the pattern's last steps, from which it was found backwards.
        nodes_map (dict[Node, Node]): the pattern's nodes and those of the graph.
        placeholder_nodes (list): what the pattern's placeholders are in the graph, in order.
        returning_nodes (list[Node]): the nodes of the graph that the pattern returns.
        name_node_map (dict[str, Node]): nodes that the pattern gave names.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Node] = field(default_factory=dict)
    placeholder_nodes: list[Node] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self):
        return InternalMatch(
            list(self.anchors),
            dict(self.nodes_map),
            list(self.placeholder_nodes),
            list(self.returning_nodes),
            dict(self.name_node_map),
        )


class SubgraphMatcher:
    """Finds a pattern in graphs.

    A node of the pattern is a node of the graph with equal target and arguments, and no two are
    the same one. What the pattern does not return must have no users outside of the occurrence.

    Args:
        pattern (Graph): the pattern.
        match_output (bool): whether its output must be the graph's output.
        match_placeholder (bool): whether its placeholders must be placeholders.
        remove_overlapping_matches (bool): whether an occurrence that shares steps with an earlier
            one is left out.
        ignore_literals (bool): whether numbers and texts may differ.

    Raises:
        ValueError: the pattern is empty or has a step that nobody uses.

    Example:
        >>> trace = facula.fx.symbolic_trace
        >>> pattern = trace(lambda a: facula.relu(a + 1)).graph
        >>> graph = trace(lambda x: facula.relu(x + 1) * facula.relu(x + 2)).graph
        >>> [match.returning_nodes for match in SubgraphMatcher(pattern).match(graph)]
        [[relu]]
    """

    def __init__(
        self,
        pattern,
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=False,
    ):
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher: the pattern must have steps; got an empty graph")
        for node in pattern.nodes:
            if node.op != "output" and not node.users and node.op != "placeholder":
                raise ValueError(f"SubgraphMatcher: {node} of the pattern must have users")
        self.pattern, self.match_output = pattern, match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        output = next(iter(reversed(pattern.nodes)))
        self.pattern_returning_nodes = output.all_input_nodes
        # The rest of the pattern is found from these backwards.
        ends = [n for n in self.pattern_returning_nodes if len(n.users) == 1]
        self.pattern_anchors = [output] if match_output else ends

    def match(self, graph, node_name_match=""):
        """The occurrences in a graph, in the order of their last steps.

        Args:
            graph (Graph): is searched.
            node_name_match (str): where a possible last step has this name, others are left out.

        Returns:
            list[InternalMatch]
        """
        found = [InternalMatch([])]
        for anchor in self.pattern_anchors:
            candidates = [n for n in graph.nodes if self._nodes_are_equal(anchor, n)]
            named = [n for n in candidates if n.name == node_name_match]
            found = [
                grown
                for match in found
                for candidate in named or candidates
                if (grown := self._grown(match, anchor, candidate)) is not None
            ]
        found = [match for match in found if match.anchors and self._is_whole(match)]
        if self.remove_overlapping_matches:
            found = self._without_overlaps(found)
        for match in found:
            match.placeholder_nodes = [
                match.nodes_map.get(p) for p in self.pattern_placeholder_nodes
            ]
        return found

    def _grown(self, match, anchor, candidate):
        match = copy.copy(match)
        match.anchors.append(anchor)
        return match if self._match_nodes(anchor, candidate, match) else None

    def _is_whole(self, match):
        for node in self.pattern_returning_nodes:
            if node not in match.nodes_map:
                return False
            match.returning_nodes.append(match.nodes_map[node])
        free = {*self.pattern_returning_nodes, *self.pattern_placeholder_nodes}
        inside = {n for n in match.nodes_map.values() if isinstance(n, Node)}
        return all(
            user in inside
            for mine, theirs in match.nodes_map.items()
            if mine not in free and isinstance(theirs, Node)
            for user in theirs.users
        )

    def _without_overlaps(self, matches):
        taken, kept = set(), []
        for match in matches:
            steps = {
                theirs
                for mine, theirs in match.nodes_map.items()
                if mine.op not in ("placeholder", "output") and isinstance(theirs, Node)
            }
            if not steps & taken:
                taken |= steps
                kept.append(match)
        return kept

    def _nodes_are_equal(self, mine, theirs, node_name_match=""):
        if mine.op == "placeholder" and not self.match_placeholder:
            return True
        if mine.op != theirs.op:
            return False
        if mine.op in ("placeholder", "output"):
            return True
        if mine.op == "get_attr":
            return self._attributes_are_alike(mine, theirs)
        return mine.target == theirs.target

    @staticmethod
    def _attributes_are_alike(mine, theirs):
        a, b = (_attribute(node) for node in (mine, theirs))
        if isinstance(a, facula.Tensor) or isinstance(b, facula.Tensor):
            return type(a) is type(b)
        return type(a) is type(b) and a == b

    def _match_nodes(self, mine, theirs, match):
        if mine in match.nodes_map:
            return match.nodes_map[mine] is theirs
        if theirs in match.nodes_map.values() or not self._nodes_are_equal(mine, theirs):
            return False
        before = dict(match.nodes_map)
        match.nodes_map[mine] = theirs
        if mine.op == "placeholder":
            return True
        ours, others = _arguments(mine, theirs)
        if ours is not None and self._match_arguments(ours, others, match):
            return True
        match.nodes_map = before
        return False

    def _match_arguments(self, mine, theirs, match):
        if isinstance(mine, Node) and isinstance(theirs, Node):
            return self._match_nodes(mine, theirs, match)
        if isinstance(mine, (list, tuple)) and isinstance(theirs, (list, tuple)):
            return len(mine) == len(theirs) and all(
                self._match_arguments(a, b, match) for a, b in zip(mine, theirs, strict=True)
            )
        return self._match_literals(mine, theirs, match) or self.ignore_literals

    @staticmethod
    def _match_literals(mine, theirs, match):
        if isinstance(mine, Node):
            if mine.op != "placeholder":
                return False
            return match.nodes_map.setdefault(mine, theirs) == theirs
        return not isinstance(theirs, Node) and type(mine) is type(theirs) and mine == theirs


def _attribute(node):
    place = node.graph.owning_module
    for part in node.target.split("."):
        place = getattr(place, part, None)
    return place


def _arguments(mine, theirs):
    """The arguments of both in one order, as lists; (None, None) where they cannot be compared."""
    if len(mine.args) == len(theirs.args) and list(mine.kwargs) == list(theirs.kwargs):
        return [list(n.args) + list(n.kwargs.values()) for n in (mine, theirs)]
    if mine.op == "call_function" and isinstance(mine.target, facula._C.OpOverload):
        schema = mine.target._schema.arguments
        return [_by_schema(n, schema) for n in (mine, theirs)]
    return None, None


def _by_schema(node, arguments):
    values = []
    for place, argument in enumerate(arguments):
        if place < len(node.args):
            values.append(node.args[place])
        else:
            values.append(node.kwargs.get(argument.name, argument.default_value))
    return values


def _split_to_graph_and_name_node_map(gm):
    """A pattern that returns (results, {name: node}) without the names, and the names."""
    graph = copy.deepcopy(gm.graph)
    output = graph.output_node()
    given = graph.process_outputs(output.args[0])
    if not (isinstance(given, (list, tuple)) and given and isinstance(given[-1], dict)):
        raise ValueError(
            "SubgraphMatcherWithNameNodeMap: the pattern must return its results and, last, a dict "
            f"of names; got {given}"
        )
    *results, names = given
    output.args = (tuple(results),)
    return graph, dict(names)
