"""Backends that run graphs as they are, at different depths: to find which part fails."""

from __future__ import annotations

import functools

from facula._dynamo.backends.common import aot_autograd

__all__ = [
    "aot_eager",
    "aot_eager_decomp_partition",
    "aot_eager_default_partitioner",
    "boxed_nop",
    "eager",
    "eager_debug",
    "eager_noexcept",
    "get_nop_func",
]


def eager(gm, fake_tensor_inputs=None, **kwargs):
    """The graph as it was captured."""
    return gm.forward


def eager_noexcept(gm, fake_tensor_inputs=None, **kwargs):
    """The same; an exception in it is an error of the capture.

    Raises:
        RuntimeError: when called, where the graph raises.
    """

    def inner(*args):
        try:
            return gm(*args)
        except Exception as error:
            raise RuntimeError("the captured graph raised, which the program did not") from error

    return inner


def boxed_nop(fx_g, example_inputs=None):
    """The graph as it is; it takes one list."""

    def run(args):
        return fx_g(*args)

    run._boxed_call = True
    return run


def eager_debug(gm, fake_tensor_inputs=None, **kwargs):
    """The graph as it was captured, after a check that it is well formed."""
    gm.graph.lint()
    return gm.forward


def get_nop_func():
    """The compiler that keeps graphs as they are."""
    return boxed_nop


def aot_eager(gm, fake_tensor_inputs, fw_compiler=None, bw_compiler=None, **kwargs):
    """The graph with its gradients, without in-place changes, split by a minimum cut, and run
    operator by operator.

    Args:
        gm (GraphModule): what was captured.
        fake_tensor_inputs (sequence): example inputs.
        fw_compiler, bw_compiler (callable): take the parts; unless given, these run as they are.

    Returns:
        callable
    """
    from facula.functorch.compile import min_cut_rematerialization_partition

    backend = aot_autograd(
        fw_compiler=fw_compiler or boxed_nop,
        bw_compiler=bw_compiler or boxed_nop,
        partition_fn=min_cut_rematerialization_partition,
    )
    return backend(gm, fake_tensor_inputs, **kwargs)


def aot_eager_default_partitioner(gm, fake_tensor_inputs, **kwargs):
    """The same, split as eager runs it: what the backward part reads is saved."""
    return aot_autograd(fw_compiler=boxed_nop)(gm, fake_tensor_inputs, **kwargs)


def aot_eager_decomp_partition(gm, fake_tensor_inputs, **kwargs):
    """The same, split by a minimum cut, with operators taken apart as for a compiler."""
    from facula._decomp import core_aten_decompositions
    from facula.functorch.compile import min_cut_rematerialization_partition

    backend = aot_autograd(
        fw_compiler=boxed_nop,
        bw_compiler=boxed_nop,
        decompositions=core_aten_decompositions,
        partition_fn=functools.partial(min_cut_rematerialization_partition),
    )
    return backend(gm, fake_tensor_inputs)
