"""A page to look at: what compiling a function makes of one call."""

from __future__ import annotations

from pathlib import Path

from facula import _C


def visualize(f, *args, path="compiled.html", **kwargs):
    """Call a function as a compiled one, and write a page of HTML about it.

    The page has the graph of each segment with its code, the breaks with their lines, the groups of
    calls that ran in one pass over memory with the bytes they moved, and a timeline. It loads
    nothing from elsewhere.

    Args:
        f (callable): called once with `args` and `kwargs`.
        path (str or Path): where to write; what is there is replaced.

    Returns:
        Path: of the page.

    Example:
        >>> import os, tempfile
        >>> file = os.path.join(tempfile.mkdtemp(), "f.html")
        >>> facula.compiler.visualize(lambda x: x.exp() + 1, facula.ones(3), path=file).name
        'f.html'
    """
    from facula._dynamo.breaks import BreakReason, _line_of_program
    from facula._dynamo.captured import Captured
    from facula._dynamo.testing import EagerAndRecordGraphs
    from facula._dynamo.units import noting_units
    from facula.compiler._page import page

    graphs, breaks = EagerAndRecordGraphs(), []

    class Looked(Captured):
        """Notes breaks."""

        def note_break(self, reason):
            breaks.append(BreakReason(reason, _line_of_program()))

    call = Looked(graphs, "visualize", dynamic=False)
    with noting_units() as units:
        _C._recorded(call, f, *args, **kwargs)
    name = getattr(f, "__qualname__", type(f).__name__)
    target = Path(path)
    target.write_text(page(name, graphs.graphs, breaks, units), encoding="utf-8")
    return target
