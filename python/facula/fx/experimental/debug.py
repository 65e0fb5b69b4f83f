"""Stopping in generated code."""

from __future__ import annotations

__all__ = ["set_trace"]


def set_trace(gm):
    """Put a breakpoint at the beginning of a module's generated code.

    Args:
        gm (GraphModule): its forward is written anew.

    Returns:
        GraphModule: the same.
    """

    def with_breakpoint(body):
        return ["import pdb; pdb.set_trace()\n", *body]

    with gm.graph.on_generate_code(
        lambda before: lambda body: with_breakpoint(before(body) if before else body)
    ):
        gm.recompile()
    return gm
