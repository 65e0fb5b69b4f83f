"""Spans of collectives in traces, traces of ranks as one, and overlap."""

import json

import facula
import facula.distributed as dist
import pytest
from facula.distributed import merge_traces, threads
from facula.profiler import profile

from .ranks import outputs


def test_collectives_are_spans_of_the_profiler(tmp_path):
    def work(rank):
        if rank:
            dist.all_reduce(facula.ones(8))
            return None
        with profile() as found:
            dist.all_reduce(facula.ones(8))
        found.export_chrome_trace(str(tmp_path / "trace.json"))
        return next(e for e in found.events() if e.name == "threads:all_reduce")

    event = threads.run(work, 2)[0]
    assert event.is_async and event.self_cpu_time_total == 0 < event.cpu_time_total
    with open(tmp_path / "trace.json") as file:
        trace = json.load(file)
    span = next(e for e in trace["traceEvents"] if e.get("cat") == "collective")
    assert span["args"]["what"] == "all_reduce(sum) float32 [8]" and span["args"]["bytes"] == 32
    names = [e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"]
    assert "collectives of group 0, rank 0 of 2" in names
    assert trace["distributedInfo"] == {"backend": "threads", "rank": 0, "world_size": 2}


def test_gradients_are_reduced_while_the_backward_pass_runs(tmp_path):
    program = """
    from facula.profiler import profile
    layers = [facula.nn.Linear(64, 64) for _ in range(6)]
    model = facula.nn.parallel.DistributedDataParallel(
        facula.nn.Sequential(*layers), bucket_cap_mb=0.02)
    for _ in range(3):
        with profile() as found:
            model(facula.ones(8, 64)).sum().backward()
    spans = [e for e in found.events() if e.name == "gloo:all_reduce"]
    last = max(e.time_range.start for e in found.events() if e.name == "aten::mm")
    print(len(spans) == 3, min(e.call.scheduled_ns for e in spans) / 1e3 < last)
    found.export_chrome_trace(os.path.join(sys.argv[3], f"trace{rank}.json"))
    """
    assert outputs(program, 2, tmp_path) == ["True True\n"] * 2
    files = [str(tmp_path / f"trace{rank}.json") for rank in range(2)]
    merged = tmp_path / "merged.json.gz"
    assert merge_traces.main([str(merged), *files]) == 0
    traces = [merge_traces._load(path) for path in files]
    for align in ("clock", "calls"):
        found = merge_traces.merge(traces, align)
        assert {e["pid"] for e in found["traceEvents"]} == {0, 1}
        assert min(e["ts"] for e in found["traceEvents"] if "ts" in e) == 0
    assert merge_traces.overlap(merge_traces._load(merged)).keys() == {0, 1}


def span(category, begin, end, rank=0, name="x", **args):
    return {
        "ph": "X", "cat": category, "name": name, "pid": rank, "ts": begin, "dur": end - begin,
        "args": args,
    }  # fmt: skip


def trace(rank, *events):
    return {"traceEvents": list(events), "distributedInfo": {"rank": rank}, "clock_offset_us": 100}


def test_overlap_counts_each_moment_once():
    events = [
        span("collective", 0, 10),
        span("collective", 5, 20),
        span("collective", 100, 110, name="gloo:barrier"),
        span("cpu_op", 8, 12),
        span("cpu_op", 9, 11),
        span("cpu_op", 15, 40),
        span("user_annotation", 0, 200),
    ]
    assert merge_traces.overlap({"traceEvents": events}) == {0: (20, 9)}


def test_clocks_that_differ_are_aligned_by_calls():
    traces = [
        trace(r, span("collective", 1000 * r, 1000 * r + 10, group="0", sequence=1))
        for r in range(2)
    ]
    by_calls = merge_traces.merge(traces, "calls")["traceEvents"]
    by_clock = merge_traces.merge(traces)["traceEvents"]
    assert [e["ts"] for e in by_calls if "ts" in e] == [0, 0]
    assert [e["ts"] for e in by_clock if "ts" in e] == [0, 1000]


WRONG = [
    (lambda: merge_traces.merge([]), "at least one"),
    (lambda: merge_traces.merge([trace(0)], "time"), "'time'"),
    (lambda: merge_traces.merge([trace(0), trace(0)]), "two of rank 0"),
    (lambda: merge_traces.merge([trace(0), trace(1)], "calls"), "none in common"),
]


def test_what_cannot_be_merged(tmp_path, capsys):
    for call, text in WRONG:
        with pytest.raises(ValueError, match=text):
            call()
    (tmp_path / "bad.json").write_text("junk")
    (tmp_path / "list.json").write_text("[]")
    for name, text in (("bad", "JSON"), ("list", "traceEvents"), ("none", "No such file")):
        path = str(tmp_path / f"{name}.json")
        assert merge_traces.main([str(tmp_path / "out.json"), path]) == 2
        assert text in capsys.readouterr().err
