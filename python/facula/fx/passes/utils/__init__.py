"""Matching, lifting and fusing parts of graphs."""

from __future__ import annotations

from facula import _missing
from facula.fx.passes.utils.common import HolderModule, compare_graphs, lift_subgraph_as_module

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


def __getattr__(name):
    return _missing.submodule(__name__, name)
