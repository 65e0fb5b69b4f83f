"""utils.benchmark: what is measured, merged and shown; nothing here depends on speed."""

import facula
import pytest
from facula.utils.benchmark import Compare, Measurement, TaskSpec, Timer, select_unit

TASK = TaskSpec("f()", "pass", label="work", sub_label="small", description="ours")
OTHER = TaskSpec("g()", "pass", label="work", sub_label="large", description="ours", num_threads=2)


def test_figures_of_known_times():
    m = Measurement(10, [1e-5, 2e-5, 3e-5, 4e-5], TASK)
    assert m.times == pytest.approx([1e-6, 2e-6, 3e-6, 4e-6])
    assert m.median == pytest.approx(2.5e-6) and m.mean == pytest.approx(2.5e-6)
    assert m.iqr == pytest.approx(1.5e-6) and m.has_warnings and not m.meets_confidence()
    assert "Median: 2.50 us" in repr(m) and "WARNING" in repr(m) and "work: small" in repr(m)
    assert m.label == "work" and m.as_row_name == "small"
    merged = Measurement.merge([m, Measurement(10, [5e-5], TASK), Measurement(9, [1.0], TASK)])
    assert [len(x.times) for x in merged] == [5, 1]


def test_statements_run_as_often_as_told():
    ran = []
    timer = Timer("ran.append(facula.get_num_threads())", globals={"ran": ran, "facula": facula})
    assert timer.timeit(7).number_per_run == 7
    assert len(ran) == 9 and set(ran) == {1}  # two runs do not count
    found = timer.blocked_autorange(min_run_time=1e-4)
    assert found.number_per_run * len(found.times) <= len(ran) and sum(found.raw_times) >= 1e-4


def test_tables_have_rows_and_columns():
    results = [Measurement(1, [2e-6], TASK), Measurement(1, [3e-6], OTHER)]
    lines = str(Compare(results)).splitlines()
    assert "work" in lines[0] and lines[1].split() == ["|", "ours"]
    assert lines[3].split() == ["small", "|", "2.0"] and lines[4].startswith("2 threads: -")
    assert "Times are in microseconds (us)." in lines
    with pytest.raises(ValueError):
        Compare([3])


def test_units_and_what_is_missing():
    assert [select_unit(t)[0] for t in (2.0, 2e-3, 2e-6, 2e-9)] == ["s", "ms", "us", "ns"]
    with pytest.raises(NotImplementedError):
        Timer("x", language="c++")
    with pytest.raises(NotImplementedError, match="callgrind"):
        Timer("1").collect_callgrind()
