"""Every operator of the table of samples on DTensors that are cut anywhere: one process's results.

Shapes are whatever the samples have, so parts are uneven or empty.
"""

import random
import warnings
import zlib

import facula
import pytest
from facula.distributed import threads
from facula.distributed.device_mesh import init_device_mesh
from facula.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from facula.utils._pytree import tree_leaves, tree_map
from samples import load_ops
from samples.common import find, make_arguments, seed_of

# What DTensors refuse: composites that bring tensors of their own, shapes that only values tell,
# tensors that terms cannot be written to, and changes of a tensor's own geometry.
REFUSED = "a plain tensor of|depends on data|can stay as it lies|shape is fixed"
OPS = [op for op in load_ops() if "float32" in op.dtype_names() and "empty" not in op.name]


def tensors_of(nest):
    return [t for t in tree_leaves(nest) if isinstance(t, facula.Tensor)]


def anywhere(tensor, draw):
    """A placement for a tensor, drawn."""
    number = draw.random()
    if tensor.dim() == 0 or number < 0.15:
        return Replicate()
    if number < 0.3 and tensor.is_floating_point():
        return Partial()
    return Shard(draw.randrange(tensor.dim()))


def run(op, index, sample, mesh=None):
    """The results and gradients of a sample, whose tensors are spread over a mesh."""
    args, kwargs = make_arguments(facula, sample, "float32", seed_of(op, index), grad=bool(op.grad))
    draw = random.Random(zlib.crc32(f"{op.name}{index}".encode()))

    def spread(t):
        if mesh is None or not isinstance(t, facula.Tensor):
            return t
        made = distribute_tensor(t.detach(), mesh, [anywhere(t, draw)])
        return made.requires_grad_(t.requires_grad)

    args, kwargs = tree_map(spread, args), tree_map(spread, kwargs)
    results = tensors_of(find(facula, op.name)(*args, **kwargs))
    losses = [r.abs().sum() if r.is_complex() else r.float().sum() for r in results]
    losses = [loss for loss in losses if loss.requires_grad]
    if losses:
        facula.autograd.backward(losses)
    found = results + [t.grad for t in tensors_of((args, kwargs)) if t.is_leaf]
    return [
        f if f is None else (f.full_tensor() if isinstance(f, DTensor) else f).detach()
        for f in found
    ]


def differs(a, b):
    if a is None or b is None:
        return a is not b
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return True
    if a.layout is not facula.strided:
        return False
    a, b = (t.resolve_conj().resolve_neg() for t in (a, b))
    return not facula.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)


def wrong_at_a_rank(op, index, sample):
    """What is wrong with a sample on two ranks, or None."""
    facula.manual_seed(0)
    try:
        expected = run(op, index, sample)
    except (TypeError, RuntimeError):  # the row has no gradient for such arguments
        return None

    def work(rank):
        facula.manual_seed(0)
        return run(op, index, sample, init_device_mesh("cpu", (2,)))

    try:
        results = threads.run(work, 2)
    except Exception as error:
        refused = any(text in str(error) for text in REFUSED.split("|"))
        return None if refused else f"{type(error).__name__}: {error}"
    for found in results:
        if any(differs(f, e) for f, e in zip(found, expected, strict=True)):
            return "other values"
    return None


@pytest.mark.parametrize("family", sorted({op.family for op in OPS}))
def test_samples_give_the_results_of_one_process(family):
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in (op for op in OPS if op.family == family):
            for index, sample in list(op.numbered_samples("float32"))[-1:]:
                if not sample.tensors():
                    continue
                problem = wrong_at_a_rank(op, index, sample)
                if problem:
                    wrong.append((op.name, index, problem))
    assert not wrong
