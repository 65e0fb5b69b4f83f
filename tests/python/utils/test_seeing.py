"""What lets a user see inside: FACULA_DEBUG, the table of switches, drawings, trace_call.py."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import facula
import pytest
from facula.utils import draw, env

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = Path(facula.__file__).parents[1]
PROGRAM = """
import facula
w = facula.ones(2, 3, requires_grad=True)
(w * 2).sum()
"""


def printed(level, program=PROGRAM):
    """What a program prints to stderr with FACULA_DEBUG set."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "FACULA_DEBUG": level}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stderr


@pytest.mark.parametrize(
    "level, there, absent",
    [
        ("0", [], ["facula"]),
        ("1", ["facula 1: aten::mul", "float32[2, 3] with autograd"], ["facula 2", "facula 4"]),
        ("2", ["layer Autograd", "layer CPU", "gives float32[2, 3]"], ["facula 4"]),
        ("4", ["facula 4:", "allocate 24 bytes on cpu", "free "], []),
        ("9", ["expected a number from 0 to 4; got 9"], ["facula 1"]),
    ],
)
def test_each_debug_level_prints_its_part(level, there, absent):
    text = printed(level)
    assert all(word in text for word in there)
    assert not any(word in text for word in absent)


@pytest.mark.parametrize(
    "statement, route",
    [
        ("facula.ones(40, 30) @ facula.ones(30, 50)", "matmul: "),
        ("facula.ones(4, 3).t() + facula.ones(4)", "elementwise: "),
    ],
)
def test_level_3_names_the_ways_of_kernels(statement, route):
    assert re.search(f"facula 3: +{route}", printed("3", f"import facula; {statement}"))


def test_debug_lines_name_their_place_in_the_source():
    lines = [line for line in printed("2").splitlines() if "layer" in line]
    for line in lines:
        path, number = line.rsplit("[", 1)[1].rstrip("]").rsplit(":", 1)
        assert (ROOT / path).is_file() and int(number) > 0


def test_the_debug_level_is_checked():
    with pytest.raises(ValueError, match="expected a number from 0 to 4; got 5"):
        facula._C._set_debug_level(5)


def test_every_switch_that_the_source_reads_is_in_the_table():
    names = {s.name for s in env.switches()} | {s.also for s in env.switches()}
    for folder in ("src", "python"):
        for path in (ROOT / folder).rglob("*.cpp"):
            text = path.read_text()
            if path.name != "environment.cpp":
                assert "getenv(" not in text, f"{path}: use environment_value()"
    assert {"FACULA_DEBUG", "FACULA_CPU_CAPABILITY", "OMP_NUM_THREADS"} <= names


def test_the_table_tells_what_is_set(monkeypatch):
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    monkeypatch.delenv("FACULA_CPU_CAPABILITY", raising=False)
    assert "FACULA_CPU_CAPABILITY (or ATEN_CPU_CAPABILITY) = avx2" in env.table()
    monkeypatch.delenv("ATEN_CPU_CAPABILITY")
    assert "FACULA_CPU_CAPABILITY (or ATEN_CPU_CAPABILITY) = not set" in env.table()


def test_the_autograd_graph_draws_itself():
    x = facula.ones(2, requires_grad=True)
    text = draw.dot((x * x).sum())
    assert text.startswith("digraph") and text.count("->") == 3
    assert all(name in text for name in ("SumBackward0", "MulBackward0", "AccumulateGrad"))


def test_a_recorded_program_draws_itself():
    from facula import _trace

    graph = _trace.trace(lambda a, b: (a + b).exp(), [facula.ones(2), facula.ones(2)])
    text = draw.dot(graph)
    assert "aten::exp" in text and text.count("->") == 4


def test_the_layers_draw_themselves_in_order():
    text = draw.layers()
    assert text.index("Autograd") < text.index("Modes") < text.index("CPU")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_svg_is_drawn_by_graphviz():
    assert "<svg" in draw.svg(draw.layers())


def test_svg_says_what_is_missing(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="graphviz"):
        draw.svg(draw.layers())


@pytest.mark.parametrize("wrong", [3, facula.ones(2)])
def test_what_has_no_graph_cannot_be_drawn(wrong):
    with pytest.raises(TypeError, match="expected a Tensor with a grad_fn"):
        draw.dot(wrong)


def test_trace_call_names_records_and_layers():
    build = PACKAGE.parent.name
    run = subprocess.run(
        [sys.executable, ROOT / "tools" / "trace_call.py", "--type", build, "a + b"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "aten::add.Tensor" in run.stdout and "layer CPU" in run.stdout
    assert "record  [src/ops/elementwise/arithmetic.cpp:" in run.stdout
    assert "kernel cpu::binary<scalar::add>  [src/ops/elementwise/" in run.stdout


def test_trace_call_names_the_functions_of_layers():
    build = PACKAGE.parent.name
    command = [sys.executable, ROOT / "tools" / "trace_call.py", "--type", build]
    setup = ["--setup", "a.requires_grad_()", "a.exp()"]
    run = subprocess.run([*command, *setup], capture_output=True, text=True)
    assert "autograd_layer  [src/autograd/layer.cpp:" in run.stdout
