"""Backends that count and keep what they are called with, and small helpers of tests."""

from __future__ import annotations

import re

import facula
from facula._dynamo.backends.debugging import aot_eager, boxed_nop
from facula._dynamo.backends.registry import lookup_backend
from facula._dynamo.eval_frame import optimize_assert, reset

__all__ = [
    "AotEagerAndRecordGraphs",
    "CompileCounter",
    "CompileCounterWithBackend",
    "EagerAndRecordGraphs",
    "clone_me",
    "extract_graph",
    "normalize_gm",
    "optimize_assert",
    "rand_strided",
    "reduce_to_scalar_loss",
    "reset",
    "reset_rng_state",
    "same",
]


class CompileCounter:
    """A backend that runs graphs as they are.

    Attributes:
        frame_count (int): how many graphs it was called with; `op_count` (int): their calls.

    Example:
        >>> counter = CompileCounter()
        >>> facula.compile(lambda x: x.sin() + 1, backend=counter)(facula.zeros(2))
        tensor([1., 1.])
        >>> counter.frame_count, counter.op_count
        (1, 2)
    """

    def __init__(self):
        self.clear()

    def clear(self):
        """Count from zero again."""
        self.frame_count = self.op_count = 0

    def _count(self, gm):
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)

    def __call__(self, gm, example_inputs):
        self._count(gm)
        return gm.forward


class CompileCounterWithBackend(CompileCounter):
    """The same in front of another backend; `graphs` are what it was called with.

    Args:
        backend (str): the other one's name.
    """

    def __init__(self, backend):
        self.backend = backend
        super().__init__()

    def clear(self):
        """Count from zero again and forget the graphs."""
        super().clear()
        self.graphs = []

    def __call__(self, gm, example_inputs):
        self._count(gm)
        self.graphs.append(gm)
        return lookup_backend(self.backend)(gm, example_inputs)


class EagerAndRecordGraphs:
    """A backend that keeps its graphs in `graphs` and runs them as they are."""

    def __init__(self):
        self.graphs = []

    def __call__(self, gm, example_inputs):
        self.graphs.append(gm)
        return gm.forward


class AotEagerAndRecordGraphs:
    """A backend as "aot_eager" that keeps what it was called with in `graphs`, and the forward and
    backward parts in `fw_graphs` and `bw_graphs`."""

    def __init__(self):
        self.graphs, self.fw_graphs, self.bw_graphs = [], [], []

    def __call__(self, gm, example_inputs):
        def keep_in(graphs):
            def compiler(part, part_inputs):
                graphs.append(part)
                return boxed_nop(part, part_inputs)

            return compiler

        self.graphs.append(gm)
        forward, backward = keep_in(self.fw_graphs), keep_in(self.bw_graphs)
        return aot_eager(gm, example_inputs, fw_compiler=forward, bw_compiler=backward)


def extract_graph(fn, *args, **kwargs):
    """What a function of these arguments gives, and its graphs: torch-level ones, forward parts.

    Returns:
        tuple: the result, a list of GraphModule, a list of GraphModule.
    """
    backend = AotEagerAndRecordGraphs()
    result = facula.compile(fn, backend=backend)(*args, **kwargs)
    return result, backend.graphs, backend.fw_graphs


def clone_me(x):
    """A copy without history that requires grad as the tensor does; None for None."""
    return None if x is None else x.detach().clone().requires_grad_(x.requires_grad)


def reduce_to_scalar_loss(out):
    """One number that depends on all tensors of a nest: the mean of their means."""
    if isinstance(out, facula.Tensor):
        return out.sum() / out.numel()
    if isinstance(out, (list, tuple)):
        return sum(reduce_to_scalar_loss(part) for part in out) / len(out)
    if isinstance(out, dict):
        return sum(reduce_to_scalar_loss(part) for part in out.values()) / len(out)
    raise NotImplementedError(f"reduce_to_scalar_loss(): expected Tensors; got {type(out)}")


def rand_strided(size, stride, dtype=facula.float32, device="cpu", extra_size=0):
    """A random tensor of these sizes and strides."""
    if not dtype.is_floating_point and not dtype.is_complex:
        made = facula.empty_strided(size, stride, dtype=dtype, device=device)
        return made.random_(0, 2 if dtype is facula.bool else 100)
    return facula.empty_strided(size, stride, dtype=dtype, device=device).normal_()


def reset_rng_state(use_xla=False):
    """Seed the generators of facula and of Python's `random` with one number."""
    import random

    facula.manual_seed(1337)
    random.seed(1337)


def normalize_gm(gm_str):
    """The printed code of a GraphModule without comments and numbers of its class."""
    lines = (re.sub(r"\s*#.*", "", line).rstrip() for line in gm_str.splitlines())
    return re.sub(r"class GraphModule\d*", "class GraphModule", "\n".join(filter(None, lines)))


def same(
    ref,
    res,
    fp64_ref=None,
    cos_similarity=False,
    tol=1e-4,
    equal_nan=False,
    exact_dtype=True,
    **kwargs,
):
    """Whether two nests of tensors and constants agree within a tolerance.

    Args:
        ref, res: the nests; `tol` (float): relative and absolute.
        equal_nan, exact_dtype (bool): whether NaN is itself; whether dtypes must be the same.
    """
    if isinstance(ref, facula.Tensor):
        if not isinstance(res, facula.Tensor) or ref.shape != res.shape:
            return False
        if exact_dtype and ref.dtype != res.dtype:
            return False
        return facula.allclose(ref.double(), res.double(), rtol=tol, atol=tol, equal_nan=equal_nan)
    options = {"tol": tol, "equal_nan": equal_nan, "exact_dtype": exact_dtype}
    if isinstance(ref, dict):
        return set(ref) == set(res) and all(same(ref[k], res[k], **options) for k in ref)
    if isinstance(ref, (list, tuple)):
        pairs = zip(ref, res, strict=False)
        return len(ref) == len(res) and all(same(a, b, **options) for a, b in pairs)
    return ref == res
