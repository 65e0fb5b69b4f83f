"""Backends made of compilers for the forward and the backward graph."""

from __future__ import annotations

import facula
from facula._logging import say
from facula.functorch.compile import (
    aot_module_simplified,
    min_cut_rematerialization_partition,
    ts_compile,
)
from facula.fx.experimental._unbacked import DataDependent

__all__ = ["AotAutograd", "aot_autograd", "mem_efficient_fusion_kwargs"]


def _geometry(args):
    return tuple(a.shape if isinstance(a, facula.Tensor) else (type(a), a) for a in args)


def _for_any_geometry(gm, example_inputs, options):
    """The compiled form of a graph; for other sizes and numbers the graph is compiled again."""
    programs = {
        _geometry(example_inputs): aot_module_simplified(gm, example_inputs, **options),
    }

    def forward(*args):
        key = _geometry(args)
        if key not in programs:
            programs[key] = aot_module_simplified(gm, args, **options)
        return programs[key](*args)

    forward.takes_any_geometry = True
    return forward


class AotAutograd:
    """A backend of `compile` that records a graph with its gradients and calls compilers with both
    parts.

    Args:
        **kwargs: as `aot_module_simplified` takes them behind the example inputs: `fw_compiler`,
            `bw_compiler`, `partition_fn`, `decompositions`, `inference_compiler`.
    """

    def __init__(self, **kwargs):
        self.__name__ = "compiler_fn"
        self.kwargs = kwargs

    def __call__(self, gm, example_inputs, **kwargs):
        if callable(self.kwargs.get("decompositions")):
            self.kwargs["decompositions"] = self.kwargs["decompositions"]()
        try:
            return _for_any_geometry(gm, example_inputs, self.kwargs)
        except DataDependent as error:
            # A derivative reads data that it alone has: autograd differentiates the graph as it is.
            say("graphs", f"{self.__name__}: no graph of the gradient: {error}")
            return gm.forward


def aot_autograd(**kwargs):
    """A backend of `compile` whose compilers get the forward and the backward graph.

    Args:
        **kwargs: as `AotAutograd` takes them.

    Returns:
        AotAutograd: callable with a GraphModule and example inputs.

    Example:
        >>> from facula.functorch.compile import nop
        >>> backend = aot_autograd(fw_compiler=nop)
        >>> module = facula.fx.symbolic_trace(lambda x: x.sin())
        >>> backend(module, [facula.zeros(2)])(facula.zeros(2))
        tensor([0., 0.])
    """
    return AotAutograd(**kwargs)


def mem_efficient_fusion_kwargs(use_decomps):
    """The arguments of `aot_autograd` that save the least memory, with decompositions or without.

    Args:
        use_decomps (bool): whether the default decompositions are among them.

    Returns:
        dict
    """
    kwargs = {
        "fw_compiler": ts_compile,
        "bw_compiler": ts_compile,
        "partition_fn": min_cut_rematerialization_partition,
    }
    if use_decomps:
        from facula.functorch.compile import default_decompositions

        kwargs["decompositions"] = default_decompositions
    return kwargs
