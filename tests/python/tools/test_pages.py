"""The code on the pages for users runs, and prints what stands below it."""

import contextlib
import io
import re
from pathlib import Path

import facula
import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = ["README.md", "docs/tutorial.md", "docs/coming_from_pytorch.md"]
_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def blocks(page):
    """The blocks of code of a page, and what each is said to print (None where nothing is said)."""
    return [match.groups() for match in _BLOCK.finditer((ROOT / page).read_text("utf-8"))]


@pytest.mark.parametrize("page", PAGES)
def test_code_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    found = blocks(page)
    assert found
    names = {"__name__": "page"}
    with facula.random.fork_rng():
        for source, expected in found:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(source, page, "exec"), names)
            assert expected is None or printed.getvalue() == expected
