"""Parts of pipelines: microbatches, texts of actions, split backwards, errors."""

import contextlib

import facula
import pytest
from facula import nn
from facula.distributed import threads
from facula.distributed.pipelining import PipelineStage, ScheduleGPipe, schedules
from facula.distributed.pipelining._backward import stage_backward_input, stage_backward_weight
from facula.distributed.pipelining._utils import (
    PipeliningMetadataError,
    generate_rank_to_stage_mapping,
)
from facula.distributed.pipelining.microbatch import (
    TensorChunkSpec,
    _LossReducer,
    merge_chunks,
    split_args_kwargs_into_chunks,
)
from facula.distributed.pipelining.schedules import _Action

CPU = facula.device("cpu")
mse = nn.functional.mse_loss


@pytest.mark.parametrize("dim", [0, 1])
def test_chunks_join_to_what_was_cut(dim):
    x = facula.arange(30).view(5, 6)
    spec = TensorChunkSpec(dim)
    args, kwargs = split_args_kwargs_into_chunks(
        ([x, 7],), {"y": x}, 3, args_chunk_spec=([spec, None],), kwargs_chunk_spec={"y": spec}
    )
    assert [a[0][1] for a in args] == [7, 7, 7]
    assert facula.equal(merge_chunks([a[0][0] for a in args], spec), x)
    assert facula.equal(merge_chunks(kwargs, {"y": spec})["y"], x)


def test_losses_can_be_added_up():
    losses = [facula.tensor(1.0), facula.tensor(3.0)]
    assert merge_chunks(losses, _LossReducer(0.0, lambda a, b: a + b)) == 4


@pytest.mark.parametrize(
    "text", ["3F1", "10W2", "2UNSHARD", "1WAIT_SEND_B0", "(0F7;7B3)OVERLAP_F_B"]
)
def test_actions_are_read_as_they_are_written(text):
    assert str(_Action.from_str(text)) == text


def test_stages_of_ranks():
    assert generate_rank_to_stage_mapping(2, 6) == {0: [0, 2, 4], 1: [1, 3, 5]}
    assert generate_rank_to_stage_mapping(2, 4, "v") == {0: [0, 3], 1: [1, 2]}


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.scale = nn.Linear(3, 3), nn.Linear(3, 3), nn.Parameter(facula.ones(3))

    def forward(self, x):
        # A branch without the input, a weight of two places, and one of another weight.
        return self.b(self.a(self.a(x).tanh()) * (self.scale * self.b.bias).exp())


def test_two_halves_of_a_backward_are_one_whole():
    model, x = Shared(), facula.randn(4, 3)
    grad = facula.randn(4, 3)
    whole = x.clone().requires_grad_()
    model(whole).backward(grad)
    wanted = [p.grad for p in model.parameters()]
    model.zero_grad()
    half = x.clone().requires_grad_()
    (found,), left = stage_backward_input((model(half),), (grad,), [half], model.parameters())
    assert all(p.grad is None for p in model.parameters())
    facula.testing.assert_close(found, whole.grad)
    stage_backward_weight(model.parameters(), left)
    facula.testing.assert_close([p.grad for p in model.parameters()], wanted)


def pair(rank, **options):
    stage = PipelineStage(nn.Linear(4, 4), rank, 2, CPU, **options)
    return ScheduleGPipe(stage, 2, loss_fn=mse)


def no_target(rank):
    return pair(rank).step(*((facula.ones(4, 4),) if rank == 0 else ()))


def too_few(rank):
    return pair(rank).step(facula.ones(1, 4))


def no_grad(rank):
    with facula.no_grad():
        return pair(rank).step(facula.ones(4, 4))


def other_shape(rank):
    args = {"input_args": facula.ones(2, 5)} if rank == 1 else {}
    return pair(rank, **args).step(facula.ones(4, 4))


@pytest.mark.parametrize(
    ("error", "text", "work"),
    [
        (ValueError, "expected a target", no_target),
        (ValueError, "expected 2 microbatches of args; got 1", too_few),
        (RuntimeError, "expected gradients to be enabled", no_grad),
        (PipeliningMetadataError, r"\[2, 5\]|\[2, 4\]", other_shape),
        (ValueError, "below 2; got 5", lambda r: PipelineStage(nn.Linear(1, 1), 5, 2, CPU)),
        (RuntimeError, "as many stages as ranks", lambda r: PipelineStage(nn.ReLU(), 0, 1, CPU)),
    ],
)
def test_errors_say_what_is_wrong(error, text, work):
    with pytest.raises(error, match=text):
        threads.run(work, 2)


def test_schedules_are_found_by_name():
    assert schedules.get_schedule_class("gpipe") is ScheduleGPipe
    with pytest.raises(ValueError, match="expected one of"):
        schedules.get_schedule_class("nope")


def test_a_schedule_can_come_from_a_file(tmp_path):
    path = tmp_path / "schedule.csv"
    path.write_text("0F0,0F1,,0B0,0B1\n1F0,1B0,1F1,1B1\n")
    modules = [nn.Linear(4, 4) for _ in range(2)]
    x = facula.randn(4, 4)
    mse(modules[1](modules[0](x)), x).backward()
    wanted = [m.weight.grad for m in modules]
    for m in modules:
        m.zero_grad()

    def work(rank):
        stage = PipelineStage(modules[rank], rank, 2, CPU)
        runtime = schedules._PipelineScheduleRuntime([stage], 2, loss_fn=mse)
        runtime._load_csv(str(path))
        return runtime.step(x) if rank == 0 else runtime.step(target=x)

    threads.run(work, 2)
    facula.testing.assert_close([m.weight.grad for m in modules], wanted)


def test_eval_computes_no_gradients():
    modules = [nn.Linear(4, 4) for _ in range(2)]
    x = facula.randn(4, 4)

    def work(rank):
        schedule = ScheduleGPipe(PipelineStage(modules[rank], rank, 2, CPU), 2, loss_fn=mse)
        losses = []
        if rank == 0:
            return schedule.eval(x), losses
        return schedule.eval(target=x, losses=losses), losses

    output, losses = threads.run(work, 2)[1]
    facula.testing.assert_close(output, modules[1](modules[0](x)))
    assert len(losses) == 2
    assert all(p.grad is None for m in modules for p in m.parameters())


def liveness(work, **options):
    def on_rank(rank):
        linears = [nn.Linear(2, 2) for _ in range(2)]
        stages = [PipelineStage(m, rank + 2 * i, 4, CPU) for i, m in enumerate(linears)]
        schedule = schedules.ScheduleInterleaved1F1B(stages, 4, loss_fn=nn.functional.mse_loss)
        options.setdefault("pp_rank", 0)
        return work(schedules.analyze_pipeline_activation_liveness(schedule, **options))

    return threads.run(on_rank, 2)[0]


def test_activations_that_are_never_kept_together_share_a_slot():
    def work(plan):
        keys = [(stage, m) for stage in (0, 2) for m in range(4)]
        times = {key: plan.get_activation_lifetime(*key) for key in keys}
        for a in keys:
            for b in keys:
                if a != b and plan.slot_for(*a) == plan.slot_for(*b):
                    assert times[a][1] < times[b][0] or times[b][1] < times[a][0]
        most = max(sum(b <= t <= e for b, e in times.values()) for t in range(60))
        return plan.num_slots, most

    count, most = liveness(work, stage_indices=[0, 2], granularity="stage_microbatch")
    assert count == most < 8


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"stage_indices": [0], "granularity": "layer"}, "expected one of"),
        ({"stage_indices": [], "granularity": "microbatch"}, "each once"),
        ({"stage_indices": [1], "granularity": "microbatch"}, "stage 1 has none"),
        ({"stage_indices": [0], "granularity": "microbatch", "pp_rank": 7}, "got 7"),
    ],
)
def test_slots_need_stages_of_the_rank(options, text):
    with pytest.raises(ValueError, match=text):
        liveness(lambda plan: None, **options)


def test_a_context_is_around_each_forward():
    seen = []

    @contextlib.contextmanager
    def note(info):
        seen.append((info.stage_index, info.microbatch_index, info.is_metadata_inference))
        yield

    def work(rank):
        stage = PipelineStage(nn.Linear(2, 2), rank, 2, CPU)
        schedule = schedules.ScheduleGPipe(stage, 2, loss_fn=nn.functional.mse_loss)
        handle = stage.register_forward_context(note) if rank == 1 else None
        if rank == 1:
            with pytest.raises(RuntimeError, match="it has one"):
                stage.register_forward_context(note)
        for _ in range(2):
            if rank == 0:
                schedule.step(facula.ones(4, 2))
            else:
                schedule.step(target=facula.ones(4, 2))
                handle.remove()

    threads.run(work, 2)
    assert seen == [(1, 0, True), (1, 0, False), (1, 1, False)]
