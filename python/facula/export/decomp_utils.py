"""The table of operators that `run_decompositions` takes apart."""

from __future__ import annotations

__all__ = ["CustomDecompTable"]


class CustomDecompTable(dict):
    """A dict of OpOverloads to functions, which begins with the core decompositions.

    Example:
        >>> table = CustomDecompTable()
        >>> kept = table.pop(facula.ops.aten.silu.default)
        >>> program = facula.export.export(facula.nn.SiLU(), (facula.ones(2),))
        >>> [str(n.target) for n in program.run_decompositions(table).graph.nodes][1]
        'aten.silu.default'
    """

    has_materialized = True  # nothing in it is made later

    def __init__(self):
        from facula._decomp import core_aten_decompositions

        super().__init__(core_aten_decompositions())

    def copy(self):
        """A table with the same entries."""
        made = type(self)()
        made.clear()
        made.update(self)
        return made

    def materialize(self):
        """The entries as a plain dict."""
        return dict(self)
