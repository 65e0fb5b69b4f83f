"""The tools that editors and hooks call."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def tool(name):
    """A script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "message, fault",
    [
        ("Short subject\n\nWhy it is so.\n", None),
        ("Merge branch 'x'\n", None),
        ("", "empty one"),
        ("x" * 73 + "\n\nWhy.\n", "got 73"),
        ("Subject.\n\nWhy.\n", "full stop"),
        ("Subject\nWhy.\n", "empty line"),
        ("Subject\n\n# a comment alone\n", "says why"),
    ],
)
def test_commit_messages(message, fault):
    found = tool("check_message").faults(message)
    assert any(fault in text for text in found) if fault else found == []


def test_a_script_waits_for_the_debugger(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print('ran')")
    run = subprocess.run(
        [sys.executable, ROOT / "tools" / "wait_for_debugger.py", script],
        env={**os.environ, "FACULA_DEBUGGER_SECONDS": "0.3"},
        capture_output=True,
        text=True,
    )
    assert "waiting for a debugger: gdb -p " in run.stderr
    assert "no debugger was attached within 0.3 seconds" in run.stderr
    assert "ran" not in run.stdout


def test_the_tracing_process_is_read_from_the_status():
    traced_by = tool("wait_for_debugger").traced_by
    assert traced_by("Name:\tx\nTracerPid:\t42\n") == 42
    assert traced_by("Name:\tx\n") == 0


@pytest.mark.parametrize("name", ["settings", "tasks", "launch", "extensions"])
def test_editor_settings_can_be_read(name):
    assert json.loads((ROOT / ".vscode" / f"{name}.json").read_text())
