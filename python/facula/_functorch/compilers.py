"""Compilers that `aot_function` may be given: most run the graph as it is."""

from __future__ import annotations

import facula
from facula._decomp import get_decompositions
from facula._functorch.aot_autograd import (
    aot_function,
    aot_module,
    make_boxed_compiler,
    make_boxed_func,
)
from facula._functorch.partitioners import draw_graph, min_cut_rematerialization_partition

__all__ = [
    "debug_compile",
    "default_decompositions",  # noqa: F822  (made when it is asked for)
    "draw_graph_compile",
    "memory_efficient_fusion",
    "nnc_jit",
    "nop",
    "print_compile",
    "simple_ts_compile",
    "ts_compile",
]


@make_boxed_compiler
def nop(fx_g, _):
    """The graph as it is.

    Example:
        >>> f = aot_function(facula.sin, fw_compiler=nop)
        >>> f(facula.zeros(2))
        tensor([0., 0.])
    """
    return make_boxed_func(fx_g.forward)


@make_boxed_compiler
def print_compile(fx_g, _):
    """The graph as it is, after its code was printed."""
    print(fx_g.code)
    return make_boxed_func(fx_g.forward)


def debug_compile(fx_g, inps):
    """The graph as it is, after its code and the shapes of its inputs were printed."""
    print(fx_g.code)
    for i, value in enumerate(inps):
        shape = tuple(value.shape) if isinstance(value, facula.Tensor) else value
        print(f"# input {i}: {shape}")
    return make_boxed_func(fx_g.forward)


@make_boxed_compiler
def ts_compile(fx_g, inps):
    """The graph as a script that TorchScript runs: facula has no TorchScript, so the graph runs as
    it is."""
    fx_g.graph.lint()
    return make_boxed_func(fx_g.forward)


simple_ts_compile = nnc_jit = ts_compile


def draw_graph_compile(name):
    """A compiler that draws its graphs to files of this name and runs them as they are."""

    def compiler(fx_g, inps):
        draw_graph(fx_g, name)
        return make_boxed_func(fx_g.forward)

    return make_boxed_compiler(compiler)


_DECOMPOSED = (
    "detach gelu_backward leaky_relu_backward sigmoid_backward threshold_backward "
    "hardtanh_backward silu_backward elu_backward _softmax _log_softmax "
    "_softmax_backward_data _log_softmax_backward_data native_layer_norm "
    "native_layer_norm_backward addcmul addcdiv"
)


def _default_decompositions():
    known = [getattr(facula.ops.aten, name) for name in _DECOMPOSED.split()]
    return get_decompositions(known)


def __getattr__(name):
    if name != "default_decompositions":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = _default_decompositions()
    return value


def memory_efficient_fusion(fn, **kwargs):
    """A function or module that saves the least memory for its backward pass.

    Args:
        fn (callable | Module): what is compiled, with `min_cut_rematerialization_partition`.
        **kwargs: as `aot_function` takes them.

    Example:
        >>> f = memory_efficient_fusion(lambda x: x.sin().cos())
        >>> f(facula.zeros(2))
        tensor([1., 1.])
    """
    options = {
        "fw_compiler": ts_compile,
        "bw_compiler": ts_compile,
        "partition_fn": min_cut_rematerialization_partition,
        "decompositions": _default_decompositions(),
    } | kwargs
    compiled = aot_module if isinstance(fn, facula.nn.Module) else aot_function
    return compiled(fn, **options)
