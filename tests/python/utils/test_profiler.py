"""profiler, autograd.profiler and utils.flop_counter: what is recorded, and what is written."""

import gzip
import json

import facula
import pytest
from facula import nn
from facula.autograd import profiler as old
from facula.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)
from facula.utils._python_dispatch import _get_current_dispatch_mode_stack
from facula.utils.flop_counter import FlopCounterMode


def work():
    model = nn.Linear(4, 4)
    return model(facula.ones(2, 4)).relu().sum()


def recorded(**options):
    with profile(activities=[ProfilerActivity.CPU], **options) as prof:
        with record_function("block"):
            work().backward()
    return prof


def test_calls_are_counted_within_their_block():
    prof = recorded(record_shapes=True, with_flops=True)
    sums = {row.key: row for row in prof.key_averages()}
    assert sums["aten::addmm"].count == 1 and sums["aten::addmm"].flops == 64
    block = sums["block"]
    assert block.is_user_annotation and block.cpu_time_total >= sums["aten::addmm"].cpu_time_total
    assert abs(block.cpu_time_total - prof.key_averages().self_cpu_time_total) < 1.0
    shapes = {r.key: r.input_shapes for r in prof.key_averages(group_by_input_shape=True)}
    assert shapes["aten::addmm"][1:] == [[2, 4], [4, 4]]


@pytest.mark.eager("memory is allocated at the end")
def test_memory_is_that_of_the_results():
    with profile(profile_memory=True) as prof:
        kept = facula.ones(1 << 20)
        more = kept + 1
    add = {row.key: row for row in prof.key_averages()}["aten::add"]
    assert more.nbytes <= add.cpu_memory_usage <= more.nbytes + 65536


def test_stacks_name_the_callers():
    prof = recorded(with_stack=True)
    event = next(e for e in prof.events() if e.name == "aten::addmm")
    assert any(line.endswith(": work") and "test_profiler.py" in line for line in event.stack)


def test_tables_are_sorted_and_cut():
    table = (
        recorded(profile_memory=True, with_flops=True)
        .key_averages()
        .table(sort_by="count", row_limit=2, header="all", max_name_column_width=20)
    )
    lines = table.splitlines()
    assert lines[0] == "all" and len([line for line in lines if "%  " in line]) == 3
    assert "CPU Mem" in table and "Total FLOPs" in table and "Self CPU time total:" in table
    with pytest.raises(AttributeError):
        recorded().key_averages().table(sort_by="nothing")


def test_traces_are_what_viewers_read(tmp_path):
    prof = recorded(record_shapes=True)
    prof.add_metadata("note", "here")
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    names = {event["name"]: event for event in trace["traceEvents"]}
    assert trace["note"] == "here" and names["aten::addmm"]["ph"] == "X"
    block, call = names["block"], names["aten::addmm"]
    assert block["ts"] <= call["ts"] and call["ts"] + call["dur"] <= block["ts"] + block["dur"]


def test_steps_follow_the_schedule(tmp_path):
    seen = []

    def handler(prof):
        seen.append(sorted({e.name for e in prof.events() if e.name.startswith("Profiler")}))
        tensorboard_trace_handler(str(tmp_path), "me", use_gzip=True)(prof)

    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    with profile(schedule=plan, on_trace_ready=handler) as prof:
        for _ in range(12):
            facula.ones(2) + 1
            prof.step()
    assert seen == [["ProfilerStep#3", "ProfilerStep#4"], ["ProfilerStep#7", "ProfilerStep#8"]]
    files = list(tmp_path.iterdir())
    assert len(files) == 2 and all(json.load(gzip.open(file))["traceEvents"] for file in files)
    assert plan(0) is ProfilerAction.NONE


def test_off_nothing_is_in_the_way():
    with profile() as prof:
        assert _get_current_dispatch_mode_stack()
    assert not _get_current_dispatch_mode_stack() and prof.events() == []
    with record_function("nobody looks"):
        assert facula.ones(1).item() == 1
    with pytest.raises(ValueError), profile():
        raise ValueError
    assert not _get_current_dispatch_mode_stack()


@pytest.mark.parametrize(
    "wrong, error",
    [
        (lambda: schedule(wait=-1, warmup=0, active=1), AssertionError),
        (lambda: schedule(wait=0, warmup=0, active=0), AssertionError),
        (lambda: profile().key_averages(), AssertionError),
        (lambda: profile(activities=[]).start(), AssertionError),
        (lambda: old.profile().table(), RuntimeError),
        (lambda: old.emit_nvtx().__enter__(), RuntimeError),
        (lambda: recorded().export_stacks("x", "nothing"), ValueError),
    ],
)
def test_wrong_calls_raise(wrong, error):
    with pytest.raises(error):
        wrong()


def test_the_names_of_old_record_too(tmp_path):
    with old.profile(with_stack=True) as prof:
        facula.ones(64, 64) @ facula.ones(64, 64)
    assert any(row.key == "aten::mm" for row in prof.key_averages())
    prof.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    assert "test_profiler.py" in (tmp_path / "stacks").read_text()
    with old.profile(enabled=False) as off:
        facula.ones(1)
    assert off.function_events is None


def test_flops_are_counted_by_module(capsys):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 36, 10))
    with FlopCounterMode(depth=3) as counter:
        model(facula.ones(2, 3, 8, 8)).sum().backward()
    counts = counter.get_flop_counts()
    forward = 2 * 2 * 36 * 8 * 27 + 2 * 2 * 288 * 10
    assert sum(counts["Sequential"].values()) == forward
    assert counter.get_total_flops() == 2 * forward + 2 * 2 * 288 * 10
    assert "Sequential.0" in capsys.readouterr().out


def test_formulas_can_be_added():
    with FlopCounterMode(
        display=False, custom_mapping={facula.ops.aten.sin: lambda x, out_shape: out_shape[0]}
    ) as counter:
        facula.ones(5).sin()
    assert counter.get_flop_counts()["Global"] == {"aten.sin": 5}
