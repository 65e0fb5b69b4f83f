"""The bench measures what it says: equal results, ratios, summaries, files."""

import json
import math
import sys
from pathlib import Path

import facula
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from bench import bits, harness, limits, repeat, report  # noqa: E402
from bench.kernels import CASES, common  # noqa: E402


def result(name, ratio, family="f", threads=1):
    return harness.Result(name, {"a": 1.0, "b": ratio}, {"b": ratio}, family, threads)


def test_names_of_kernel_cases_are_unique():
    names = [f"{case.family}: {case.name}" for case in CASES]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("layout", common.LAYOUTS)
def test_layouts_keep_the_values(layout):
    spec = common.In((3, 4, 5, 6), layout=layout)
    found = common.tensors(facula, [spec], 7)[0]
    plain = common.tensors(facula, [spec._replace(layout="")], 7)[0]
    if layout == "expanded":
        plain = plain[:1].expand(3, 4, 5, 6)
    assert facula.equal(found, plain)
    assert layout == "" or not found.is_contiguous()


@pytest.mark.parametrize(
    ("call", "traffic", "operations"),
    [
        (lambda x: x @ x, 2 * 4096, 2 * 32**3),
        (lambda x: facula.softmax(x * 2, -1), 2 * 4096, 0),
        (lambda x: x.add_(1), 2 * 4096, 0),
        (lambda x: x[:3].t(), 0, 0),
        (lambda x: x[:1].expand(32, 32) + x[:, :1], 128 + 4096, 0),
        (lambda x: x.index_select(0, facula.tensor([1, 2])), 256 + 16 + 256, 0),
    ],
)
def test_work_is_what_must_move_and_be_multiplied(call, traffic, operations):
    x = facula.randn(32, 32)
    assert limits.work_of(lambda: call(x), facula) == (traffic, operations, "float32")


def test_work_that_nobody_knows_is_named_with_the_reason():
    def failing():
        raise NotImplementedError("no storage\nand more")

    with pytest.raises(limits.UnknownWork, match="^NotImplementedError: no storage$"):
        limits.work_of(failing, facula)
    assert harness.watched(failing, facula) == (None, "NotImplementedError: no storage")
    known = result("known", 1.0)._replace(least=0.5)
    lines = report.limit_lines([known, known._replace(name="y", least=0.0, unknown="why")], "a")
    assert lines[-1] == "  unknown for f: y: why"


def test_the_least_time_is_that_of_memory_or_of_products():
    work = limits.Work(1 << 20, 0, "float32")
    moving = limits.least_seconds(work, [facula], 1)
    assert moving == (1 << 20) / limits.bandwidth(1 << 20, 1)
    many = work._replace(operations=1 << 40)
    assert limits.least_seconds(many, [facula], 1) > 1000 * moving
    assert limits.least_seconds(None, [facula], 1) == 0


def test_different_results_are_not_timed():
    harness.must_agree(facula.ones(3), facula.ones(3) + 1e-6, "peer")
    for found in (facula.ones(4), facula.tensor([1.0, 1.0, 1.1]), facula.full((3,), float("nan"))):
        with pytest.raises(harness.Disagreement):
            harness.must_agree(facula.ones(3), found, "peer")


def test_a_case_is_measured_at_each_number_of_threads():
    before = facula.get_num_threads()
    case = harness.Case("add", lambda m: lambda: m.ones(8) + 1, rounds=2, seconds=1e-4)
    try:
        found = harness.measure(case, {"facula": facula}, threads=(1, 2))
    finally:
        facula.set_num_threads(before)
    assert [r.threads for r in found] == [1, 2]
    assert all(r.seconds["facula"] > 0 for r in found)


def test_a_failure_takes_the_place_of_a_time():
    def make(m):
        raise NotImplementedError("not there")

    found = harness.measure(harness.Case("x", make, rounds=1), {"facula": facula})[0]
    assert isinstance(found.seconds["facula"], NotImplementedError)
    assert report.as_json(found)["seconds"]["facula"] == "NotImplementedError: not there"


def test_summary_counts_and_names_slow_cases():
    results = [result("fast", 4.0), result("slow", 0.8), result("slower", 0.25)]
    assert report.share_below(results, "b", 0.9) == pytest.approx(2 / 3)
    lines = report.summary(results, ["a", "b"])
    assert "0.93x" in lines[0]
    assert [line.split()[-2] for line in lines[-2:]] == ["slower", "slow"]


def test_a_saved_run_can_be_read(tmp_path, capsys):
    file = tmp_path / "run.json"
    report.save(file, {"a": facula, "b": facula}, {"s": [result("x", 2.0), result("y", 8.0)]})
    content = json.loads(file.read_text(encoding="utf-8"))
    assert content["geomean"]["s"]["b"] == pytest.approx(4.0)
    assert [row["name"] for row in content["suites"]["s"]] == ["x", "y"]


def test_a_commit_without_git_is_unknown(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert report.commit() == "unknown"


def test_a_statement_is_timed_without_a_call_around_it():
    """Its names are local, it runs as often as asked, and prepare() sees its value."""
    turns = []
    run = harness.Statement("turns.append(a + 1)", {"turns": turns, "a": 2})
    assert harness.time_calls(run, 5) > 0
    assert turns == [3] * 5
    assert harness.Statement("a + b", {"a": 1, "b": 2})() == 3
    case = harness.Case("add", lambda m: harness.Statement("a + a", {"a": m.ones(1)}), rounds=1)
    assert harness.measure(case._replace(checked=True), {"facula": facula})[0].seconds["facula"] > 0


def test_runs_are_merged_by_their_medians():
    runs = [report.as_json(result("x", ratio)) for ratio in (3.0, 1.0, 2.0)]
    merged = repeat.merge(runs)
    assert (merged.ratios["b"], merged.spread["b"], merged.seconds["b"]) == (2.0, (1.0, 3.0), 2.0)
    assert repeat.geomeans([runs, runs], "b") == pytest.approx([1.0, 2.0, 3.0])


def test_a_failure_of_one_run_is_kept():
    runs = [report.as_json(result("x", 1.0)) for _ in range(3)]
    runs[1]["seconds"]["a"] = "ValueError: no"
    assert "ValueError: no" in str(repeat.merge(runs).seconds["a"])


def test_an_interrupt_keeps_the_runs_that_are_done(monkeypatch, capsys):
    def run_once(arguments, number, folder):
        if number == 2:
            raise KeyboardInterrupt
        return number

    monkeypatch.setattr(repeat, "run_once", run_once)
    assert repeat.finished_runs([], 5) == [0, 1]
    assert "interrupted after 2 of 5 runs" in capsys.readouterr().out


def test_digests_tell_bits_and_shapes_apart_and_nans_not():
    x = facula.tensor([1.0, 2.0, math.nan])
    assert bits.digest(x) == bits.digest([x.clone()]) == bits.digest((-x).neg())
    for other in (x.nextafter(x + 1), x[:2], x.double(), x.view(3, 1)):
        assert bits.digest(other) != bits.digest(x)


@pytest.mark.parametrize("family", ["optimizers", "softmax"])
def test_a_case_has_the_same_digest_each_time(family):
    case = next(case for case in CASES if case.family == family)
    threads = facula.get_num_threads()
    try:
        found = bits.digests_of(case, (1, 2)) | bits.digests_of(case, (3,))
    finally:
        facula.set_num_threads(threads)
    assert len(set(found.values())) == 1


def test_kept_digests_are_read(tmp_path):
    kept = tmp_path / "bits.tsv"
    kept.write_text("# what made them\nmatmul: mm 4x4\t0123456789abcdef\n")
    assert bits.read(kept) == {"matmul: mm 4x4": "0123456789abcdef"}
