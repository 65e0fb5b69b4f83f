"""A directed graph of modules and what they need."""

from __future__ import annotations


class DiGraph:
    """Nodes with attributes and edges between them, both in the order they were added."""

    def __init__(self):
        self._attributes, self._next, self._before = {}, {}, {}

    @property
    def nodes(self):
        """dict from a node to the dict of its attributes."""
        return self._attributes

    @property
    def edges(self):
        """Pairs of a node and one that it leads to."""
        return ((a, b) for a, found in self._next.items() for b in found)

    def add_node(self, n, **kwargs):
        """Adds a node, or attributes to one that is there."""
        if n not in self._attributes:
            self._attributes[n], self._next[n], self._before[n] = {}, {}, {}
        self._attributes[n].update(kwargs)

    def add_edge(self, u, v):
        """Adds an edge, and its ends where they are missing."""
        self.add_node(u)
        self.add_node(v)
        self._next[u][v] = self._before[v][u] = True

    def _known(self, n):
        if n not in self._attributes:
            raise ValueError(f"The node {n} is not in the digraph.")
        return n

    def successors(self, n):
        """The nodes that edges lead to from `n`; ValueError when it is not there."""
        return iter(self._next[self._known(n)])

    def predecessors(self, n):
        """The nodes from which edges lead to `n`; ValueError when it is not there."""
        return iter(self._before[self._known(n)])

    def __contains__(self, n):
        return n in self._attributes

    def __iter__(self):
        return iter(self._attributes)

    def forward_transitive_closure(self, src):
        """The set of all nodes that `src` leads to, itself included."""
        return self._closure(src, self._next)

    def backward_transitive_closure(self, src):
        """The set of all nodes that lead to `src`, itself included."""
        return self._closure(src, self._before)

    def _closure(self, src, table):
        found, waiting = {self._known(src)}, [src]
        while waiting:
            new = [n for n in table[waiting.pop()] if n not in found]
            found.update(new)
            waiting += new
        return found

    def first_path(self, dst):
        """A shortest way to `dst` from a node that nothing leads to, as a list of nodes."""
        ways, at = [[self._known(dst)]], 0
        seen = {dst}
        while at < len(ways):
            way, at = ways[at], at + 1
            before = [n for n in self._before[way[0]] if n not in seen]
            if not self._before[way[0]]:
                return way
            seen.update(before)
            ways += [[n, *way] for n in before]
        return ways[-1]

    def all_paths(self, src, dst):
        """The part of the graph that leads from `src` to `dst`, as text for Graphviz."""
        between = self.forward_transitive_closure(src) & self.backward_transitive_closure(dst)
        part = DiGraph()
        for a, b in self.edges:
            if a in between and b in between:
                part.add_edge(a, b)
        return part.to_dot()

    def to_dot(self):
        """The graph as text for Graphviz."""
        edges = "\n".join(f'"{a}" -> "{b}";' for a, b in self.edges)
        return f"digraph G {{\nrankdir = LR;\nnode [shape=box];\n{edges}\n}}\n"
