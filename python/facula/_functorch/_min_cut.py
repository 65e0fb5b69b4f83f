"""Minimum cuts of flow networks, by Dinic's algorithm ("Algorithm for Solution of a Problem of
Maximum Flow in Networks with Power Estimation", 1970)."""

from __future__ import annotations

from collections import deque

INFINITE = 1 << 60


class Network:
    """A directed graph whose edges have capacities.

    Example:
        >>> network = Network()
        >>> network.add("a", "b", 3)
        >>> network.add("b", "c", 2)
        >>> network.maximum_flow("a", "c")
        2
        >>> network.sink_side("a", "c")
        {'c'}
    """

    def __init__(self):
        self._edges = {}  # vertex -> list of numbers of edges
        self._to, self._left = [], []  # by number; the edge back has the number beside (n ^ 1)

    def add(self, start, end, capacity):
        """Add an edge."""
        for a, b, room in ((start, end, capacity), (end, start, 0)):
            self._edges.setdefault(a, []).append(len(self._to))
            self._to.append(b)
            self._left.append(room)

    def _levels(self, source):
        """The vertices that have room on a way from the source, with their distances."""
        levels, pending = {source: 0}, deque([source])
        while pending:
            vertex = pending.popleft()
            for edge in self._edges.get(vertex, ()):
                end = self._to[edge]
                if self._left[edge] > 0 and end not in levels:
                    levels[end] = levels[vertex] + 1
                    pending.append(end)
        return levels

    def _augment(self, source, sink, levels, position):
        """Send what fits along one shortest way; returns how much that was."""
        way, vertex = [], source
        while vertex != sink:
            edges = self._edges.get(vertex, ())
            at = position.get(vertex, 0)
            while at < len(edges) and not self._leads_on(edges[at], vertex, levels):
                at += 1
            position[vertex] = at
            if at < len(edges):
                way.append(edges[at])
                vertex = self._to[edges[at]]
            elif not way:
                return 0
            else:  # a dead end
                vertex = self._to[way.pop() ^ 1]
                position[vertex] += 1
        amount = min(self._left[edge] for edge in way)
        for edge in way:
            self._left[edge] -= amount
            self._left[edge ^ 1] += amount
        return amount

    def _leads_on(self, edge, vertex, levels):
        return self._left[edge] > 0 and levels.get(self._to[edge]) == levels[vertex] + 1

    def maximum_flow(self, source, sink):
        """The most that flows from the source to the sink; the edges keep it."""
        total = 0
        while sink in (levels := self._levels(source)):
            position = {}
            while amount := self._augment(source, sink, levels, position):
                total += amount
        return total

    def sink_side(self, source, sink):
        """The vertices on the sink's side of the minimum cut that is nearest to it, as a set.

        Raises:
            RuntimeError: every cut has infinite capacity.
        """
        if self.maximum_flow(source, sink) >= INFINITE:
            raise RuntimeError("minimum cut: expected a cut of finite capacity; got none")
        found, pending = {sink}, [sink]
        while pending:
            for edge in self._edges.get(pending.pop(), ()):
                start = self._to[edge]
                if self._left[edge ^ 1] > 0 and start not in found:
                    found.add(start)
                    pending.append(start)
        return found
