"""Pipelines of threads: values and gradients are those of one process."""

import facula
import pytest
from facula import nn
from facula.distributed import threads
from facula.distributed.pipelining import PipelineStage, schedules

F = nn.functional
CPU = facula.device("cpu")
# Schedule, ranks, stages of each rank, microbatches.
CASES = [
    ("GPipe", 2, 1, 4),
    ("GPipe", 4, 1, 4),
    ("1F1B", 2, 1, 4),
    ("1F1B", 4, 1, 6),
    ("LoopedBFS", 2, 2, 3),
    ("Interleaved1F1B", 2, 2, 4),
    ("Interleaved1F1B", 4, 2, 8),
    ("InterleavedZeroBubble", 2, 2, 4),
    ("InterleavedZeroBubble", 4, 2, 8),
    ("ZBVZeroBubble", 2, 2, 4),
    ("ZBVZeroBubble", 4, 2, 2),
    ("DualPipeV", 2, 2, 4),
    ("DualPipeV", 4, 2, 8),
]


class Block(nn.Module):
    """Uses a weight twice, so that it is reached over two ways."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        return x + self.second(F.gelu(self.first(facula.tanh(self.first(x)))))


def blocks(n):
    facula.manual_seed(1)
    return [Block() for _ in range(n)]


def batch(microbatches):
    facula.manual_seed(2)
    return facula.randn(2 * microbatches, 6), facula.randn(2 * microbatches, 6)


def expected(stages, microbatches):
    model = nn.Sequential(*blocks(stages))
    x, target = batch(microbatches)
    output = model(x)
    F.mse_loss(output, target).backward()
    return output, [[p.grad for p in block.parameters()] for block in model]


def stages_of(rank, ranks, local, schedule):
    if schedule in ("ZBVZeroBubble", "DualPipeV"):
        return [rank, 2 * ranks - 1 - rank]
    return [rank + ranks * i for i in range(local)]


def made(schedule, rank, ranks, local, microbatches, modules, **options):
    n = ranks * local
    stages = [PipelineStage(modules[i], i, n, CPU) for i in stages_of(rank, ranks, local, schedule)]
    kind = schedules.get_schedule_class(schedule)
    is_single = issubclass(kind, schedules.PipelineScheduleSingle)
    return kind(stages[0] if is_single else stages, microbatches, F.mse_loss, **options), stages


def train(rank, schedule, ranks, local, microbatches, modules, **options):
    pipeline, stages = made(schedule, rank, ranks, local, microbatches, modules, **options)
    x, target = batch(microbatches)
    losses, first, last = [], stages[0].is_first, any(s.is_last for s in stages)
    for _ in range(2):  # what is left of one step must not show in the next
        for stage in stages:
            stage.submod.zero_grad()
        output = pipeline.step(
            *((x,) if first else ()), target=target if last else None, losses=losses
        )
    return output, losses


@pytest.mark.parametrize("case", CASES, ids=str)
def test_outputs_and_gradients_are_those_of_one_process(case):
    schedule, ranks, local, microbatches = case
    modules = blocks(ranks * local)
    results = threads.run(train, ranks, (schedule, ranks, local, microbatches, modules))
    output, grads = expected(ranks * local, microbatches)
    (found,) = [r for r in results if r[0] is not None]
    facula.testing.assert_close(found[0], output)
    assert len(found[1]) == microbatches
    facula.testing.assert_close(
        facula.stack(found[1]).mean(), F.mse_loss(output, batch(microbatches)[1])
    )
    for module, wanted in zip(modules, grads, strict=True):
        facula.testing.assert_close([p.grad for p in module.parameters()], wanted)


def test_gradients_are_not_scaled_if_asked_not_to():
    modules = blocks(2)
    threads.run(lambda r: train(r, "GPipe", 2, 1, 4, modules, scale_grads=False), 2)
    _, grads = expected(2, 4)
    for module, wanted in zip(modules, grads, strict=True):
        facula.testing.assert_close([p.grad / 4 for p in module.parameters()], wanted)
