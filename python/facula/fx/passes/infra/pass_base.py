"""What a pass over a graph module is."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """What a pass gives: the module, and whether anything was changed."""

    graph_module: Any
    modified: bool


class PassBase(abc.ABC):
    """A pass: `call` does the work, `requires` and `ensures` check the module before and after.

    Example:
        >>> class Relus(PassBase):
        ...     def call(self, graph_module):
        ...         nodes = graph_module.graph.find_nodes(op="call_function", target=facula.relu)
        ...         for node in nodes:
        ...             node.target = facula.sigmoid
        ...         return PassResult(graph_module, bool(nodes))
        >>> Relus()(facula.fx.symbolic_trace(lambda x: facula.relu(x))).modified
        True
    """

    def __call__(self, graph_module):
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module):
        """Do the work.

        Args:
            graph_module (GraphModule): may be changed.

        Returns:
            PassResult | None
        """

    def requires(self, graph_module):  # noqa: B027  (may be left out)
        """Check the module before; raises where something is wrong."""

    def ensures(self, graph_module):  # noqa: B027
        """Check the module after; raises where something is wrong."""
