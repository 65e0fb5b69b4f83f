"""Operators on DTensors give what they give on whole tensors, wherever those are cut."""

import itertools

import facula
import pytest
from distributed.tensor.operator_cases import FOUR, ONE, TWO
from facula.distributed import threads
from facula.distributed.device_mesh import init_device_mesh
from facula.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
)
from facula.distributed.tensor.debug import CommDebugMode
from facula.distributed.tensor.placement_types import _StridedShard

S0, S1, R, P = Shard(0), Shard(1), Replicate(), Partial()


def flat(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def whole(value):
    return value.full_tensor() if isinstance(value, DTensor) else value


def check(call, tensors, placements, mesh_shape=(2,), gradients=False):
    """Compare a call on DTensors with one on whole tensors, with gradients of what is whole."""
    tensors = [t.clone().requires_grad_(gradients) for t in tensors]
    expected = [e.detach() if hasattr(e, "detach") else e for e in flat(call(facula, *tensors))]
    expected_grads = derivatives(call, tensors) if gradients else []

    def work(rank):
        mesh = init_device_mesh("cpu", mesh_shape)
        mine = [
            distribute_tensor(t.detach(), mesh, p).requires_grad_(gradients)
            for t, p in zip(tensors, placements, strict=True)
        ]
        found = [whole(f) for f in flat(call(facula, *mine))]
        grads = [whole(g) for g in derivatives(call, mine)] if gradients else []
        return found, grads

    for found, grads in threads.run(work, facula.Size(mesh_shape).numel()):
        close(found, expected)
        close(grads, expected_grads)


def close(found, expected):
    assert len(found) == len(expected)
    for f, e in zip(found, expected, strict=True):
        f = f.detach() if isinstance(f, facula.Tensor) else f
        facula.testing.assert_close(f, e)


def derivatives(call, tensors):
    results = [r for r in flat(call(facula, *tensors)) if r.requires_grad]
    total = sum((r * r).sum() for r in results)
    grads = facula.autograd.grad(total, tensors, allow_unused=True)
    return [g for g in grads if g is not None]


def draw(*shape):
    return facula.randn(shape, generator=facula.Generator().manual_seed(len(shape)))


def differentiable(name):
    return "argmax" not in name and name not in (
        "item",
        "any",
        "all along",
        "isnan",
        "zeros_like",
        "new_zeros",
        "foreach_norm",
    )


@pytest.mark.parametrize("name", ONE)
def test_one_tensor(name):
    # Terms cannot be written to: a number would be added at each rank.
    for placement in (S0, S1, R, P)[: 3 if "in place" in name else 4]:
        check(ONE[name], [draw(4, 4)], [[placement]], gradients=differentiable(name))


@pytest.mark.parametrize("name", TWO)
def test_two_tensors(name):
    a, b = draw(4, 4), draw(4, 4, 1)[..., 0]
    for p, q in itertools.product((S0, S1, R), (S0, S1, R, P)):
        check(TWO[name], [a, b], [[p], [q]], gradients=True)


@pytest.mark.parametrize("name", FOUR)
def test_four_dimensions(name):
    a, b = draw(2, 2, 4, 4), draw(2, 2, 4, 4, 1)[..., 0]
    for p in (S0, S1, Shard(2), Shard(3), R):
        check(FOUR[name], [a, b], [[p], [R]], gradients=True)


# Some are given sizes that fit (4, 4) alone.
FIXED = ("view, split first", "view, split last", "permute", "expand", "layer_norm")


@pytest.mark.parametrize("name", [n for n in ONE if n not in FIXED])
def test_uneven_parts(name):
    for placement in (S0, S1):
        check(ONE[name], [draw(5, 3)], [[placement]])


@pytest.mark.parametrize("name", ["add", "mm", "linear", "embedding", "cross entropy", "cat"])
def test_two_dimensions_of_a_mesh(name):
    a, b = draw(4, 4), draw(4, 4, 1)[..., 0]
    for p, q in itertools.product(((S0, S1), (S0, S0), (S1, R)), ((S0, S1), (R, S0), (P, R))):
        check(TWO[name], [a, b], [p, q], (2, 2), gradients=True)


def test_a_layer_on_cut_positions_moves_no_activations():
    facula.manual_seed(0)
    layer, x = facula.nn.Linear(4, 6), facula.randn(2, 8, 4)
    layer(x).square().sum().backward()

    def work(rank):
        mesh = init_device_mesh("cpu", (2,))
        own = facula.nn.Linear(4, 6)
        own.load_state_dict(layer.state_dict())
        own = distribute_module(own, mesh)
        mine = distribute_tensor(x, mesh, [S1])
        with CommDebugMode() as mode:
            y = own(mine)
            assert y.placements == (S1,) and mode.get_total_counts() == 0
            flat = y.view(16, 6)
            assert flat.placements == (_StridedShard(0, split_factor=2),)
            y.square().sum().backward()
            assert mode.get_total_counts() == 0
        expected = layer(x).detach()
        close([y.full_tensor().detach()], [expected])
        close([flat.full_tensor().detach()], [expected.view(16, 6)])
        close([own.weight.grad.full_tensor()], [layer.weight.grad])
        return True

    assert all(threads.run(work, 2))
