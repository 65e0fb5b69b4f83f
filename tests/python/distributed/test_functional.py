"""Collectives that make new tensors: values, gradients, shapes without data."""

import threading

import facula
import facula.distributed as dist
import pytest
from facula.distributed import _async_tensor, threads
from facula.distributed import _functional_collectives as functional
from facula.distributed.nn import functional as with_derivatives
from facula.utils._python_dispatch import TorchDispatchMode

N = 3


def value(rank):
    return (facula.arange(6.0) + 10 * rank).view(3, 2)


def weight(rank, n=18):
    return facula.arange(1.0, n + 1) * (rank + 1)


CASES = {
    "all_reduce": lambda x, g: functional.all_reduce(x, "sum", g),
    "average": lambda x, g: functional.all_reduce(x, "avg", g),
    "all_gather": lambda x, g: functional.all_gather_tensor(x, 0, g),
    "all_gather of columns": lambda x, g: functional.all_gather_tensor(x, 1, g),
    "reduce_scatter": lambda x, g: functional.reduce_scatter_tensor(x, "sum", 0, g),
    "reduce_scatter of columns": lambda x, g: functional.reduce_scatter_tensor(x.t(), "avg", 1, g),
    "all_to_all": lambda x, g: functional.all_to_all_single(x, None, None, g),
    "permutation": lambda x, g: functional.permute_tensor(x, [1, 2, 0], g),
}


def model(name, xs):
    """What each rank should have, computed in one process."""
    if name in ("all_reduce", "average"):
        return [sum(xs) / (N if name == "average" else 1)] * N
    if name == "all_gather":
        return [facula.cat(xs)] * N
    if name == "all_gather of columns":
        return [facula.cat(xs, 1)] * N
    if name == "reduce_scatter":
        return list(sum(xs).chunk(N))
    if name == "reduce_scatter of columns":
        return list((sum(xs).t() / N).chunk(N, 1))
    if name == "all_to_all":
        return [facula.cat([x[r : r + 1] for x in xs]) for r in range(N)]
    return [xs[2], xs[0], xs[1]]


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_one_process(name):
    def work(rank):
        x = value(rank).requires_grad_()
        y = CASES[name](x, dist.group.WORLD)
        (functional.wait_tensor(y).flatten() * weight(rank, y.numel())).sum().backward()
        return y.detach(), x.grad

    xs = [value(r).requires_grad_() for r in range(N)]
    expected = model(name, xs)
    sum((y.flatten() * weight(r, y.numel())).sum() for r, y in enumerate(expected)).backward()
    for rank, (y, grad) in enumerate(threads.run(work, N)):
        assert facula.allclose(y, expected[rank]) and facula.allclose(grad, xs[rank].grad)


def test_groups_are_given_by_name_or_ranks():
    def work(rank):
        dist.new_group([0, 1])
        x = facula.ones(2)
        by_name = functional.all_reduce(x, "sum", dist.group.WORLD.group_name)
        by_ranks = functional.all_reduce(x, "max", list(range(N)))
        copied = functional.broadcast(x * rank, 2, None)
        with pytest.raises(ValueError, match="process group"):
            functional.all_reduce(x, "sum", [7])
        with pytest.raises(ValueError, match="reduction"):
            functional.all_reduce(x, "median", None)
        return by_name[0].item(), by_ranks[0].item(), copied[0].item()

    assert threads.run(work, N) == [(3, 1, 2)] * N


def test_operators_have_shapes_without_data():
    x = facula.empty(6, 2, device="meta")
    ops = facula.ops._c10d_functional
    assert ops.all_gather_into_tensor(x, 4, "0").shape == (24, 2)
    assert ops.reduce_scatter_tensor(x, "sum", 3, "0").shape == (2, 2)
    assert ops.all_to_all_single(x, [1, 2], [3, 3], "0").shape == (3, 2)
    assert [y.shape for y in ops.all_reduce_coalesced([x, x], "sum", "0")] == [(6, 2)] * 2


DERIVATIVES = {
    "all_reduce": lambda x: with_derivatives.all_reduce(x),
    "all_gather": lambda x: facula.cat(with_derivatives.all_gather(x)),
    "reduce_scatter": lambda x: with_derivatives.reduce_scatter(x[:1], list(x.split(1))),
    "all_to_all": lambda x: facula.cat(
        with_derivatives.all_to_all(list(facula.zeros(N, 1, 2)), list(x.split(1)))
    ),
    "all_to_all_single": lambda x: with_derivatives.all_to_all_single(facula.zeros(3, 2), x),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_functions_with_derivatives(name):
    def work(rank):
        x = value(rank).requires_grad_()
        y = DERIVATIVES[name](x)
        (y.flatten() * weight(rank, y.numel())).sum().backward()
        return y.detach(), x.grad

    xs = [value(r).requires_grad_() for r in range(N)]
    same = {"all_to_all_single": "all_to_all"}.get(name, name)
    expected = model(same, xs)
    sum((y.flatten() * weight(r, y.numel())).sum() for r, y in enumerate(expected)).backward()
    for rank, (y, grad) in enumerate(threads.run(work, N)):
        assert facula.allclose(y, expected[rank]) and facula.allclose(grad, xs[rank].grad)


def test_derivatives_of_one_ranks_collectives():
    def work(rank):
        x = value(rank).requires_grad_()
        parts = [facula.full((2,), float(i + 1), requires_grad=True) for i in range(N)]
        y = with_derivatives.broadcast(x, 1) * (rank + 1)
        z = with_derivatives.reduce(x, 0) * 2
        g = facula.cat(with_derivatives.gather(x, 2)) * 3
        s = with_derivatives.scatter(parts, 0) * (rank + 1)
        y.sum().backward()
        first, x.grad = x.grad, None
        (z.sum() if rank == 0 else z.sum() * 0).backward()
        second, x.grad = x.grad, None
        g.sum().backward()
        s.sum().backward()
        return first[0, 0].item(), second[0, 0].item(), x.grad[0, 0].item(), parts[1].grad

    results = threads.run(work, N)
    assert [r[0] for r in results] == [0, 6, 0]
    assert [r[1] for r in results] == [2, 2, 2]
    assert [r[2] for r in results] == [3, 3, 3]
    assert facula.equal(results[0][3], facula.full((2,), 2.0))


def test_operators_return_before_the_data_is_there():
    arrived = threading.Event()

    def work(rank):
        ops = facula.ops._c10d_functional
        name = dist.group.WORLD.group_name
        x = facula.full((3,), rank + 1.0)
        if rank == 1:
            assert arrived.wait(10)  # the others have gone on although this rank has not come
        total = ops.all_reduce(x, "sum", name)
        whole = ops.all_gather_into_tensor(x, N, name)
        if rank == 0:
            arrived.set()
        assert ops.wait_tensor(total) is total and (x == rank + 1).all()
        return total[0].item(), ops.wait_tensor(whole)[::3].tolist()

    assert threads.run(work, N) == [(6, [1, 2, 3])] * N


def test_results_under_way_wait_when_their_values_are_needed():
    arrived = threading.Event()

    def work(rank):
        if rank == 1:
            assert arrived.wait(10)
        total = functional.all_reduce(facula.full((2, 3), rank + 1.0), "sum", dist.group.WORLD)
        assert type(total) is functional.AsyncCollectiveTensor
        view = total.t()[0]
        assert total.shape == (2, 3) and total.stride() == (3, 1) and view.shape == (2,)
        assert not total.completed and not view.completed
        arrived.set()
        assert type(view + 1) is facula.Tensor and (view + 1 == 7).all() and view.completed
        total.add_(1)
        assert repr(total).startswith("AsyncCollectiveTensor(tensor([[7.")
        assert type(functional.wait_tensor(total)) is facula.Tensor
        dist.all_reduce(total, dist.ReduceOp.MAX)
        return total.tolist(), facula.cat([total, view[None, :1].expand(1, 3)]).sum().item()

    assert threads.run(work, N) == [([[7, 7, 7]] * 2, 63)] * N


def test_errors_come_where_a_result_is_waited_for():
    def work(rank):
        total = functional.all_reduce(facula.ones(2 + (rank == 1)), "sum", dist.group.WORLD)
        with pytest.raises(dist.DistBackendError, match="expected the same call"):
            total.sum()

    threads.run(work, N)


def test_results_that_nobody_waits_for_are_forgotten_once_they_have_ended():
    def work(rank):
        for _ in range(200):
            functional.all_reduce(facula.ones(1), "sum", dist.group.WORLD)
        dist.barrier()

    threads.run(work, 2)
    _async_tensor.forget_ended()
    assert not _async_tensor._under_way


def test_under_a_mode_results_are_plain():
    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(func._schema.name)
            return func(*args, **(kwargs or {}))

    names = []

    def work(rank):
        if rank == 0:
            with Names():
                return functional.all_reduce(facula.ones(1), "sum", dist.group.WORLD)
        return functional.all_reduce(facula.ones(1), "sum", dist.group.WORLD).wait()

    assert [type(t) for t in threads.run(work, 2)] == [facula.Tensor] * 2
    assert names[1:] == [f"_c10d_functional::{n}" for n in ("all_reduce", "wait_tensor")], names
