"""The actions of each schedule as text, against PyTorch's."""

import importlib
import logging

import pytest
import torch  # noqa: F401

logging.getLogger("torch").setLevel(logging.ERROR)
MODULES = {name: f"{name}.distributed.pipelining.schedules" for name in ("torch", "facula")}
# Schedule, ranks, stages of each rank, microbatches.
CASES = [
    *[("LoopedBFS", *c) for c in ((2, 2, 3), (4, 1, 5), (2, 4, 2), (3, 5, 3))],
    *[("Interleaved1F1B", *c) for c in ((2, 2, 4), (4, 2, 8), (2, 4, 2), (3, 5, 9), (4, 3, 3))],
    *[("InterleavedZeroBubble", *c) for c in ((2, 2, 4), (4, 2, 8), (3, 2, 3), (2, 4, 6))],
    *[("ZBVZeroBubble", *c) for c in ((2, 2, 4), (4, 2, 8), (3, 2, 3), (4, 2, 2), (1, 2, 3))],
    *[("DualPipeV", *c) for c in ((2, 2, 4), (4, 2, 8), (3, 2, 9), (4, 2, 13), (1, 2, 3))],
]


class Stage:
    """What schedules look at before they run."""

    submod = group = None
    device = "cpu"
    has_backward = True

    def __init__(self, index, ranks, stages):
        self.group_rank, self.group_size = 0, ranks
        self.stage_index, self.num_stages = index, stages

    is_first = property(lambda self: self.stage_index == 0)
    is_last = property(lambda self: self.stage_index == self.num_stages - 1)


def stage_class(library):
    """That of the stages that a library's schedules accept."""
    module = importlib.import_module(MODULES[library])
    bases = (Stage,) if library == "torch" else (Stage, module._PipelineStageBase)
    return type("KnownStage", bases, {})


def made(library, name, ranks, local, microbatches, **options):
    stages = ranks * local
    is_vee = name in ("ZBVZeroBubble", "DualPipeV")
    mine = [0, stages - 1] if is_vee else range(0, stages, ranks)
    module = importlib.import_module(MODULES[library])
    schedule = module.get_schedule_class(name)
    kind = stage_class(library)
    stages = [kind(i, ranks, stages) for i in mine]
    return schedule(stages, microbatches, loss_fn=lambda *a: a, **options)


@pytest.mark.parametrize("format", ["compute_only", "compute_comms"])
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("defers", [False, True])
def test_files_of_schedules_are_the_same(case, format, defers, tmp_path):
    texts = []
    for library in MODULES:
        path = tmp_path / library
        made(library, *case, defer_reduce_grad_wait=defers)._dump_csv(str(path), format)
        texts.append(path.read_text().splitlines())
    assert texts[1] == texts[0]


@pytest.mark.parametrize(("name", "ranks", "microbatches"), [("GPipe", 4, 6), ("1F1B", 4, 6)])
def test_schedules_of_one_stage_have_the_same_actions(name, ranks, microbatches):
    orders = []
    for library in MODULES:
        module = importlib.import_module(MODULES[library])
        stage = stage_class(library)(0, ranks, ranks)
        schedule = module.get_schedule_class(name)(stage, microbatches, loss_fn=lambda *a: a)
        order = schedule._get_pipeline_order()
        # PyTorch's text of the last rank of 1F1B numbers its forwards from 1.
        orders.append([[str(a) for a in order[r] if a] for r in range(ranks - 1)])
    assert orders[1] == orders[0]


def test_the_table_of_a_schedule_is_the_same():
    texts = []
    for library in MODULES:
        module = importlib.import_module(MODULES[library])
        order = made(library, "Interleaved1F1B", 2, 4, 2).pipeline_order
        texts.append(module._format_pipeline_order(order))
    assert texts[1] == texts[0]


@pytest.mark.parametrize("granularity", ["microbatch", "stage_microbatch"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_slots_of_activations_are_the_same(case, granularity):
    found = []
    for library in MODULES:
        schedule = made(library, *case)
        analyze = importlib.import_module(MODULES[library]).analyze_pipeline_activation_liveness
        local, ranks = case[2], case[1]
        is_vee = case[0] in ("ZBVZeroBubble", "DualPipeV")
        stages = [0, local * ranks - 1] if is_vee else [ranks * i for i in range(local)]
        plan = analyze(schedule, pp_rank=0, stage_indices=stages, granularity=granularity)
        keys = [(stage, m) for stage in stages for m in range(case[3])]
        lives = [plan.get_activation_lifetime(*key) for key in keys]
        found.append((plan.num_slots, [plan.slot_for(*key) for key in keys], lives))
    assert found[0] == found[1]
