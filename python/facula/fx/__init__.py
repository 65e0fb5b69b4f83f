"""Programs as graphs in Python: trace a module, look at its nodes, change them, run them.

`symbolic_trace` runs a module on proxies and records what it does; a `GraphModule` is a module
whose `forward` is written from a graph.
"""

from __future__ import annotations

from facula import _missing
from facula.fx._symbolic_trace import (
    PH,
    ProxyableClassMeta,
    Tracer,
    is_fx_symbolic_tracing,
    symbolic_trace,
    wrap,
)
from facula.fx.graph import CodeGen, Graph
from facula.fx.graph_module import GraphModule
from facula.fx.interpreter import Interpreter, Transformer
from facula.fx.node import Node, has_side_effect, map_arg
from facula.fx.proxy import Proxy
from facula.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]


def __getattr__(name):
    return _missing.submodule(__name__, name)
