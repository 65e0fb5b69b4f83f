"""What compiled functions tell of themselves: explain, logs, and the page of visualize()."""

import os
import re
import shutil
import subprocess
import sys

import facula
import pytest
from facula import _logging


def program(x):
    y = (x * 2 + 1).exp()
    if y.sum() > 0:
        y = y - y.mean(-1, keepdim=True)
    return y.relu() * 3


@pytest.fixture
def logs():
    yield _logging.set_logs
    _logging.set_logs()


def test_explain_tells_groups_and_the_bytes_they_save():
    (first,) = facula._dynamo.explain(lambda x: (x * 2 + 1).exp())(facula.randn(64, 32)).units
    assert first.calls == ("aten::mul.Tensor", "aten::add.Tensor", "aten::exp")
    size = 64 * 32 * 4
    assert first.is_group and first.sizes == (64, 32)
    assert (first.bytes_read, first.bytes_written, first.bytes_alone) == (size, size, 6 * size)
    assert first.nanoseconds > 0
    found = facula._dynamo.explain(program)(facula.randn(64, 32))
    assert found.bytes_after < found.bytes_before
    assert re.search(r"test_what_is_told.py:\d+", str(found)) and "one by one" in str(found)


def test_calls_by_themselves_are_units_too():
    x = facula.randn(8, 8)
    (unit,) = facula._dynamo.explain(lambda x: x @ x)(x).units
    assert unit.calls[0].startswith("aten::m") and not unit.is_group
    assert unit.bytes_moved == unit.bytes_alone == 3 * x.nbytes


@pytest.mark.parametrize(
    "topic, backend, text",
    [
        ("breaks", "inductor", r"test_what_is_told.py:\d+: Python asks"),
        ("breaks", "eager", r"test_what_is_told.py:\d+: Tensor.__bool__"),
        ("graphs", "inductor", r"program: \d+ calls put off"),
        ("graphs", "eager", r"mul = l_x_ \* 2"),
        ("fusion", "inductor", r"group aten::mul.Tensor aten::add.Tensor aten::exp.*\[4, 8\]"),
        ("kernels", "inductor", r"(group|call) aten::.* us"),
        ("memory", "inductor", r"program: .* at most"),
        ("recompiles", "eager", r"size 0 of input 0 was 4 and is 6"),
    ],
)
def test_each_topic_says_its_own(logs, capsys, topic, backend, text):
    facula._dynamo.reset()
    logs(**{topic: True})
    f = facula.compile(program, backend=backend)
    for rows in (4, 6):
        assert facula.equal(f(facula.ones(rows, 8)), program(facula.ones(rows, 8)))
    told = capsys.readouterr().err
    assert re.search(text, told)
    assert all(line.startswith(f"[facula {topic}] ") for line in told.splitlines())


def test_nothing_is_said_unless_asked(capsys):
    facula.compile(program)(facula.ones(4, 8))
    assert capsys.readouterr().err == ""


def test_names_of_pytorch_are_known_and_others_are_not(logs):
    logs(graph_breaks=True, dynamo=10, output_code=True, bytecode=True)
    assert _logging.is_on("breaks") and _logging.is_on("kernels") and not _logging.is_on("graphs")
    logs(all=10)
    assert all(_logging.is_on(topic) for topic in ("memory", "recompiles"))
    with pytest.raises(TypeError, match="'brakes'"):
        logs(brakes=True)
    with pytest.raises(ValueError, match="3"):
        logs(dynamo=3)


def in_process(variable, value):
    code = "import facula; facula.compile(lambda x: x.exp() + 1)(facula.ones(20000)).sum().item()"
    environment = {**os.environ, variable: value}
    run = [sys.executable, "-c", code]
    return subprocess.run(run, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("variable", ["FACULA_LOGS", "TORCH_LOGS"])
def test_variables_of_the_environment_are_read(variable):
    assert "[facula fusion] group aten::exp" in in_process(variable, "+fusion,dynamo").stderr


def test_an_unknown_name_in_the_environment_is_an_error_with_the_known_ones():
    done = in_process("FACULA_LOGS", "breaks,groups")
    assert done.returncode and "got 'groups'" in done.stderr and "recompiles" in done.stderr


def test_the_page_has_the_graph_the_groups_the_code_and_the_timeline(tmp_path):
    path = facula.compiler.visualize(program, facula.randn(64, 32), path=tmp_path / "page.html")
    text = path.read_text()
    assert text.count('<svg class="graph"') == 2 and text.count('<svg class="timeline"') == 1
    assert "aten::mul.Tensor · aten::add.Tensor · aten::exp" in text
    assert "return (exp, gt)" in text and "test_what_is_told.py" in text
    assert text.count('<rect class="group"') == 2
    assert not re.search(r"(src|href)=|url\(|@import|<script", text)


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_a_browser_shows_the_page(tmp_path):
    page = facula.compiler.visualize(program, facula.randn(64, 32), path=tmp_path / "page.html")
    shot = tmp_path / "page.png"
    options = "--headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,1600"
    run = [BROWSER, *options.split(), f"--screenshot={shot}", page.as_uri()]
    subprocess.run(run, capture_output=True, timeout=60, check=True)
    Image = pytest.importorskip("PIL.Image")

    colours = {colour for _, colour in Image.open(shot).convert("RGB").getcolors(1 << 24)}
    assert {(227, 154, 59), (127, 147, 171), (232, 241, 251)} <= colours  # group, call, input
