"""Functions compiled ahead of time with their gradients, and the parts that do it."""

from __future__ import annotations

from facula._decomp import get_decompositions
from facula._functorch import config
from facula._functorch.aot_autograd import (
    aot_function,
    aot_module,
    aot_module_simplified,
    compiled_function,
    compiled_module,
    get_aot_compilation_context,
    get_aot_graph_name,
    get_graph_being_compiled,
    make_boxed_compiler,
    make_boxed_func,
)
from facula._functorch.compilers import (
    debug_compile,
    draw_graph_compile,
    memory_efficient_fusion,
    nnc_jit,
    nop,
    print_compile,
    ts_compile,
)
from facula._functorch.partitioners import (
    default_partition,
    draw_graph,
    min_cut_rematerialization_partition,
)
from facula.fx.experimental.proxy_tensor import make_fx as pythonkey_decompose

__all__ = [
    "aot_function",
    "aot_module",
    "aot_module_simplified",
    "compiled_function",
    "compiled_module",
    "config",
    "debug_compile",
    "default_decompositions",  # noqa: F822  (made when it is asked for)
    "default_partition",
    "draw_graph",
    "draw_graph_compile",
    "get_aot_compilation_context",
    "get_aot_graph_name",
    "get_decompositions",
    "get_graph_being_compiled",
    "make_boxed_compiler",
    "make_boxed_func",
    "memory_efficient_fusion",
    "min_cut_rematerialization_partition",
    "nnc_jit",
    "nop",
    "print_compile",
    "pythonkey_decompose",
    "ts_compile",
]


def __getattr__(name):
    if name != "default_decompositions":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from facula._functorch import compilers

    return compilers.default_decompositions
