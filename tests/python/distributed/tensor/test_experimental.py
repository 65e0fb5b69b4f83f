"""Functions on parts, rules of one's own, implicit replicas, attention to all positions."""

import facula
import pytest
from facula.distributed import threads
from facula.distributed.device_mesh import init_device_mesh
from facula.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from facula.distributed.tensor._rules import registered
from facula.distributed.tensor.debug import CommDebugMode, visualize_sharding
from facula.distributed.tensor.experimental import (
    _attention,
    context_parallel,
    implicit_replication,
    local_map,
    register_sharding,
)

S0, S1, R, P = Shard(0), Shard(1), Replicate(), Partial()
attention = facula.nn.functional.scaled_dot_product_attention


def test_plain_tensors_are_replicas_where_that_is_asked_for():
    def work(rank):
        mesh = init_device_mesh("cpu", (2,))
        x = distribute_tensor(facula.arange(6.0).view(3, 2), mesh, [S0])
        with implicit_replication():
            y = x * facula.tensor([1.0, 10.0])
        return y.placements, y.full_tensor().tolist()

    assert threads.run(work, 2) == [((S0,), [[0, 10], [2, 30], [4, 50]])] * 2


def test_local_map():
    def work(rank):
        mesh = init_device_mesh("cpu", (2,))
        a = distribute_tensor(facula.arange(8.0).view(4, 2), mesh, [S0]).requires_grad_()
        b = distribute_tensor(facula.ones(4, 2), mesh, [R])

        def product(x, y, factor):
            return (x * y).sum() * factor, factor

        mapped = local_map(
            product,
            out_placements=([P], None),
            in_placements=([S0], [S0], None),
            redistribute_inputs=True,
        )
        total, factor = mapped(a, b, 3)
        total.full_tensor().backward()
        return (
            total.full_tensor().item(),
            factor,
            a.grad.placements,
            a.grad.full_tensor().sum().item(),
        )

    assert threads.run(work, 2) == [(84, 3, (S0,), 24)] * 2


def test_local_map_tells_what_does_not_fit():
    def work(rank):
        mesh = init_device_mesh("cpu", (2,))
        x = distribute_tensor(facula.ones(4), mesh, [S0])
        same = local_map(lambda x: x, [S0], in_placements=([R],))
        with pytest.raises(ValueError, match="redistribute_inputs"):
            same(x)
        with pytest.raises(AssertionError, match="plain tensor"):
            same(facula.ones(2))
        with pytest.raises(AssertionError, match="in_placements for each of 2"):
            same(x, x)
        return True

    assert all(threads.run(work, 2))


def test_a_rule_of_ones_own():
    op = facula.ops.aten.tril.default

    def work(rank):
        mesh = init_device_mesh("cpu", (2,))
        x = distribute_tensor(facula.ones(2, 2), mesh, [S0])
        before = x.tril().placements
        facula.distributed.barrier()
        if rank == 0:

            @register_sharding(op)
            def rows_stay(x, diagonal=0):
                return [([R], [R, None]), ([S0], [S0, None])]

        facula.distributed.barrier()
        return before, x.tril().placements

    try:
        assert threads.run(work, 2) == [((R,), (S0,))] * 2
    finally:
        registered.pop(op)


def test_collectives_are_counted_by_module():
    def work(rank):
        mesh = init_device_mesh("cpu", (2,))
        x = distribute_tensor(facula.ones(4, 4), mesh, [S0])
        with CommDebugMode() as mode:
            x.sum().full_tensor()
            x.redistribute(placements=[S1])
            x.redistribute(placements=[R])
        names = sorted(str(k) for k in mode.get_comm_counts())
        table = mode.generate_comm_debug_tracing_table()
        return names, mode.get_total_counts(), "aten.sum.default" in table

    kinds = ("all_gather_into_tensor", "all_reduce", "all_to_all_single")
    assert threads.run(work, 2) == [([f"c10d_functional.{k}" for k in kinds], 3, True)] * 2


def test_parts_are_shown(capsys):
    def work(rank):
        mesh = init_device_mesh("cpu", (2, 2))
        visualize_sharding(distribute_tensor(facula.ones(4, 4), mesh, [S0, R]), header="x")

    threads.run(work, 4)
    expected = "x\n           columns 0-3\nrows 0-1   cpu:0, cpu:1\nrows 2-3   cpu:2, cpu:3\n"
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("method", ["allgather", "alltoall"])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("balanced", [False, True])
def test_attention_to_the_positions_of_all_ranks(method, is_causal, balanced):
    facula.manual_seed(0)
    whole = [facula.randn(2, 3, 8, 4, requires_grad=True) for _ in range(3)]
    expected = attention(*whole, is_causal=is_causal)
    (expected * facula.arange(4.0)).sum().backward()
    options = _attention._cp_options

    def work(rank):
        mesh = init_device_mesh("cpu", (2,))
        mine = [t.detach().clone() for t in whole]
        with context_parallel(mesh, buffers=mine, buffer_seq_dims=[2, 2, 2]):
            parts = [t.detach().clone().requires_grad_() for t in mine]
            out = attention(*parts, is_causal=is_causal)
            (out * facula.arange(4.0)).sum().backward()
        assert all(facula.equal(m, w) for m, w in zip(mine, whole, strict=True))
        found = [out.detach(), *(p.grad for p in parts)]
        return _attention.context_parallel_unshard(mesh, found, [2] * 4)

    before = options.rotate_method, options.enable_load_balance
    try:
        _attention.set_rotate_method(method)
        options.enable_load_balance = balanced
        results = threads.run(work, 2)
    finally:
        options.rotate_method, options.enable_load_balance = before
    for found in results:
        for f, e in zip(found, [expected.detach(), *(w.grad for w in whole)], strict=True):
            facula.testing.assert_close(f, e)


def test_context_parallel_tells_what_does_not_fit():
    def work(rank):
        mesh = init_device_mesh("cpu", (2,))
        x = facula.ones(1, 1, 4, 2)
        with pytest.raises(ValueError, match="a dimension for each"):
            context_parallel(mesh, buffers=[x], buffer_seq_dims=[]).__enter__()
        with context_parallel(mesh), pytest.raises(NotImplementedError, match="dropout"):
            attention(x, x, x, dropout_p=0.5)
        with pytest.raises(NotImplementedError, match="allgather"):
            _attention.set_rotate_method("mail")
        return True

    assert all(threads.run(work, 2))
