"""Options of DistributedDataParallel: dtypes, meshes, gradients that wait, passes ended by hand."""

import facula
import facula.distributed as dist
import pytest
from facula import nn
from facula.distributed._composable import replicate
from facula.distributed.algorithms.ddp_comm_hooks import powerSGD_hook, quantization_hooks
from facula.distributed.optim.utils import _KINDS, as_functional_optim
from facula.distributed.tensor import DTensor
from facula.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from facula.nn.parallel import DistributedDataParallel
from facula.nn.parallel.distributed import _MixedPrecision
from test_data_parallel import batch, model, on_ranks, part, steps

ROWS = 4  # of a rank, in `part`


def same(found, expected, tolerance=1e-5):
    for a, b in zip(found, expected, strict=True):
        facula.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


# --- dtypes


@pytest.mark.parametrize("reduce_dtype", [None, facula.float32])
@pytest.mark.parametrize("wrap", [DistributedDataParallel, replicate])
def test_mixed_precision_computes_in_a_narrow_dtype_and_steps_in_a_wide_one(wrap, reduce_dtype):
    policy = _MixedPrecision(facula.bfloat16, reduce_dtype, facula.float64)
    inputs, targets = batch()
    expected = steps(model(), inputs, targets)

    def work(rank):
        net = model()
        net.register_buffer("scale", facula.ones(1))
        seen = []
        net[0].register_forward_hook(lambda m, args, out: seen.append((m.weight.dtype, out.dtype)))
        ddp = wrap(net, mixed_precision=policy, gradient_as_bucket_view=True)
        travels = set()
        reducer = ddp.reducer if wrap is not replicate else None
        if reducer is None:
            ddp(inputs[:1])
        found = steps(ddp, part(inputs, rank), part(targets, rank).bfloat16())
        reducer = reducer or replicate.state(net)._ddp.reducer
        travels = {bucket.buffer.dtype for bucket in reducer.buckets}
        assert set(seen) == {(facula.bfloat16, facula.bfloat16)}
        assert travels == {reduce_dtype or facula.bfloat16}
        assert net.scale.dtype == facula.float64
        assert {p.dtype for p in net.parameters()} == {facula.float32}
        assert {p.grad.dtype for p in net.parameters()} == {facula.float32}
        return found

    found = on_ranks(work)
    for rank in found:
        same(rank, expected, 5e-2)
        same(rank, found[0], 0)


# --- meshes


def test_a_mesh_says_which_ranks_average():
    inputs, targets = batch()
    expected = [steps(model(), inputs[a : a + 8], targets[a : a + 8]) for a in (0, 4)]

    def work(rank):
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "other"))
        ddp = DistributedDataParallel(model(), device_mesh=mesh["data"])
        assert ddp.device_mesh == mesh["data"]
        # Ranks 0 and 2 average, and 1 and 3.
        rows = [slice(a * ROWS, a * ROWS + ROWS) for a in (0, 1, 1, 2)][rank]
        return steps(ddp, inputs[rows], targets[rows])

    for rank, found in enumerate(on_ranks(work, 4)):
        same(found, expected[rank % 2])


@pytest.mark.parametrize("wrap", [DistributedDataParallel, replicate])
def test_tensor_parallel_modules_are_copied_over_the_other_dimension(wrap):
    inputs, targets = batch()
    inputs, targets = inputs[:8], targets[:8]
    expected = steps(model(), inputs, targets)

    def work(rank):
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
        plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
        net = parallelize_module(model(), mesh["tensor"], plan)
        ddp = wrap(net, device_mesh=mesh["data"])
        rows = slice(ROWS * (rank // 2), ROWS * (rank // 2) + ROWS)
        steps(ddp, inputs[rows], targets[rows])
        assert not any(isinstance(p, DTensor) for p in net.parameters())
        return [p.detach() for p in net.parameters()]

    ranks = on_ranks(work, 4)
    for found in (ranks[:2], ranks[2:]):
        whole = [*found[0]]
        for number, dim in ((0, 0), (1, 0), (2, 1)):
            whole[number] = facula.cat([found[0][number], found[1][number]], dim)
        same(whole, expected)


# --- gradients that wait for another one


@pytest.mark.parametrize("count", [2, 6])
def test_delayed_gradients_are_averaged_with_that_of_another_parameter(count):
    inputs, targets = batch()
    expected = steps(model(), inputs, targets)

    def work(rank):
        net = model(seed=rank)
        late = list(net.named_parameters())[-count:]
        ddp = DistributedDataParallel(
            net, delay_all_reduce_named_params=late, param_to_hook_all_reduce=net[0].weight
        )
        assert len(ddp.reducer.params) == 6 - count
        return steps(ddp, part(inputs, rank), part(targets, rank))

    for found in on_ranks(work):
        same(found, expected)


def test_delayed_gradients_add_up_over_passes():
    def work(rank):
        net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
        nn.init.ones_(net[0].weight)
        nn.init.ones_(net[1].weight)
        ddp = DistributedDataParallel(
            net,
            delay_all_reduce_named_params=[("1.weight", net[1].weight)],
            param_to_hook_all_reduce=net[0].weight,
        )
        with facula.no_grad():
            ddp(facula.ones(1, 1))
        assert net[1].weight.grad is None
        found = []
        for syncs in (False, True, True):
            ddp.require_backward_grad_sync = syncs
            ddp(facula.full((1, 1), rank + 1.0)).sum().backward()
            found.append([p.grad.item() for p in net.parameters()])
        return found

    assert on_ranks(work, 2) == [
        [[1, 1], [3, 3], [4.5, 4.5]],
        [[2, 2], [3, 3], [4.5, 4.5]],
    ]


# --- passes that are ended by hand


@pytest.mark.parametrize("options", [{}, {"gradient_as_bucket_view": True, "bucket_cap_mb": 1e-5}])
def test_gradients_come_when_a_pass_is_ended_by_hand(options):
    inputs, targets = batch()
    alone = model()
    nn.functional.mse_loss(alone(inputs), targets).backward()

    def work(rank):
        ddp = DistributedDataParallel(model(), **options)
        ddp.require_manual_backward_finalization = True
        after = []
        for _ in range(3):
            ddp.zero_grad()
            loss = nn.functional.mse_loss(ddp(part(inputs, rank)), part(targets, rank))
            after.append(ddp.should_finalize_after_backward)
            loss.backward()
            ddp.finalize_backward()
            with pytest.raises(RuntimeError, match="got none"):
                ddp.finalize_backward()
        assert after == [True, False, False]
        return [p.grad.clone() for p in ddp.parameters()]

    for found in on_ranks(work):
        same(found, [p.grad for p in alone.parameters()])


def test_a_hook_may_end_a_pass():
    def work(rank):
        net = nn.Linear(1, 1, bias=False)
        ddp = DistributedDataParallel(net)
        ddp.require_manual_backward_finalization = True
        early, found = facula.ones(1, 1, requires_grad=True), []
        early.register_post_accumulate_grad_hook(lambda t: ddp.finalize_backward())
        for step in range(2):
            ddp.zero_grad()
            # A gradient of an input comes after those of the module.
            x = early if step else early.detach()
            out = ddp(x * (rank + 1.0))
            assert ddp.should_finalize_after_backward == (step == 0)
            out.sum().backward()
            if step == 0:
                ddp.finalize_backward()
            found.append(net.weight.grad.item())
        return found

    assert on_ranks(work, 2) == [[1.5, 1.5]] * 2


def test_a_pass_that_nobody_ends_is_told():
    def work(rank):
        ddp = DistributedDataParallel(nn.Linear(1, 1))
        ddp.require_manual_backward_finalization = True
        ddp(facula.ones(1, 1)).sum().backward()
        with pytest.raises(RuntimeError, match="between passes"):
            ddp.require_manual_backward_finalization = False
        with pytest.raises(RuntimeError, match="finalize_backward.. before the next"):
            ddp(facula.ones(1, 1))
        return True

    assert all(on_ranks(work, 2))


# --- hooks


@pytest.mark.parametrize(
    ("hook", "tolerance"),
    [
        (quantization_hooks.quantization_pertensor_hook, 5e-2),
        (quantization_hooks.quantization_perchannel_hook, 5e-2),
    ],
)
def test_gradients_travel_as_bytes(hook, tolerance):
    inputs, targets = batch()
    expected = steps(model(), inputs, targets)

    def work(rank):
        ddp = DistributedDataParallel(model())
        ddp.register_comm_hook(None, hook)
        return steps(ddp, part(inputs, rank), part(targets, rank))

    found = on_ranks(work)
    for rank in found:
        same(rank, expected, tolerance)
        same(rank, found[0], 0)


def test_pieces_of_a_bucket_have_scales_of_their_own():
    def work(rank):
        ddp = DistributedDataParallel(nn.Linear(1024, 1, bias=False))
        ddp.register_comm_hook(None, quantization_hooks.quantization_perchannel_hook)
        x = facula.linspace(-1e-3, 1e-3, 1024)[None] * (rank + 1)
        x[0, 1000] = 1e6
        ddp(x).sum().backward()
        return ddp.module.weight.grad

    wanted = facula.linspace(-1e-3, 1e-3, 1024)[:512] * 1.5
    for found in on_ranks(work, 2):
        facula.testing.assert_close(found[0, :512], wanted, rtol=0, atol=2e-5)
        assert found[0, 1000] == 1e6


def test_batched_power_sgd_averages_matrices_of_low_rank():
    def work(rank):
        ddp = DistributedDataParallel(nn.Linear(4, 4, bias=False))
        state = powerSGD_hook.PowerSGDState(None, 1, start_powerSGD_iter=2)
        ddp.register_comm_hook(state, powerSGD_hook.batched_powerSGD_hook)
        for _ in range(4):
            ddp.zero_grad()
            ddp(facula.arange(4.0)[None] * (rank + 1)).sum().backward()
        return ddp.module.weight.grad

    for found in on_ranks(work, 2):
        wanted = facula.arange(4.0)[None].expand(4, 4) * 1.5
        facula.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", [{}, {"gradient_as_bucket_view": True, "bucket_cap_mb": 1e-5}])
def test_parameters_are_updated_with_their_bucket(options):
    inputs, targets = batch()
    expected = steps(model(), inputs, targets)

    def work(rank):
        net = model()
        ddp = DistributedDataParallel(net, **options)
        ddp._register_fused_optim(facula.optim.SGD, 0.1, momentum=0.9)
        for _ in range(3):
            ddp.zero_grad()
            nn.functional.mse_loss(ddp(part(inputs, rank)), part(targets, rank)).backward()
        return [p.detach() for p in net.parameters()]

    for found in on_ranks(work):
        same(found, expected)


def test_only_some_parameters_are_updated_with_their_bucket():
    def work(rank):
        net = model()
        before = [p.detach().clone() for p in net.parameters()]
        ddp = DistributedDataParallel(net)
        ddp._register_fused_optim(facula.optim.Adam, optim_params=[net[0].weight], lr=0.1)
        ddp(facula.ones(2, 4)).sum().backward()
        return [not p.equal(b) for p, b in zip(net.parameters(), before, strict=True)]

    assert on_ranks(work, 2) == [[True] + [False] * 5] * 2


@pytest.mark.parametrize("kind", _KINDS)
def test_an_optimizer_can_be_told_of_one_gradient_at_a_time(kind):
    ours, theirs = ([p.detach().requires_grad_() for p in model().parameters()] for _ in range(2))
    known, one = kind(theirs, lr=0.1), as_functional_optim(kind, lr=0.1)
    one.param_group["params"] = ours[2:]
    for step in range(3):
        grads = [facula.full_like(p, step - 0.5) for p in ours]
        for p, grad in zip(theirs, grads, strict=True):
            p.grad = grad
        known.step()
        for p, grad in zip(ours[:2], grads[:2], strict=True):
            one.step_param(p, grad)
        one.step(grads[2:])
        assert all(p.grad is None for p in ours)
    same(ours, theirs)
    assert set(one.state) == set(ours)
    with pytest.raises(ValueError, match="each of 4"):
        one.step([])
    with pytest.raises(ValueError, match="LBFGS"):
        as_functional_optim(facula.optim.LBFGS)


# --- what does not go together


def test_bad_options_are_named():
    def work(rank):
        net = nn.Linear(1, 1)
        named = list(net.named_parameters())
        grid = dist.init_device_mesh("cpu", (2, 1))
        line = dist.init_device_mesh("cpu", (2,))
        for options, error, text in (
            ({"device_mesh": grid}, RuntimeError, "one dimension"),
            ({"device_mesh": line, "process_group": dist.group.WORLD}, RuntimeError, "got both"),
            ({"delay_all_reduce_named_params": named}, ValueError, "together"),
            ({"param_to_hook_all_reduce": net.weight}, ValueError, "together"),
        ):
            with pytest.raises(error, match=text):
                DistributedDataParallel(net, **options)
        late = DistributedDataParallel(
            net, delay_all_reduce_named_params=named, param_to_hook_all_reduce=net.weight
        )
        with pytest.raises(RuntimeError, match="by hand"):
            late.require_manual_backward_finalization = True
        with pytest.raises(NotImplementedError, match="delay_all_reduce_named_params"):
            with late.join():
                pass
        return True

    assert all(on_ranks(work, 2))
