"""tools/function_table.py: the table of speed and error."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import function_table  # noqa: E402


def test_a_row_has_times_and_errors_of_both():
    ((name, times, errors),) = function_table.rows("float32", "log1p")
    assert name == "log1p"
    assert len(times) == len(errors) == 2
    assert min(times) > 0 and 0 < max(errors) < 2


@pytest.mark.skipif(not function_table.ANALYSER, reason="no llvm-mca")
def test_ports_are_those_of_a_loop_of_vectors():
    loops = "".join(
        function_table.LOOP.format(
            name=name, type="float", record=f"facula::scalar::{name}", entry="call"
        )
        for name in ("exp2", "log1p")
    )
    file = function_table.ROOT / "src" / "ops" / "elementwise" / "exp_log.cpp"
    cycles = function_table.analysed(file, loops)
    assert 5 < cycles["exp2", "float"] < cycles["log1p", "float"] < 60
