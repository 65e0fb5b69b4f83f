"""Pages that quote code quote what is there: a fenced block below `<!-- from: path -->` stands in
that file, word for word up to its indentation."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MARK = re.compile(r"^\s*<!-- from: (\S+) -->\s*$")
FENCE = re.compile(r"^\s*(```+|~~~+)")


def quotes(text):
    """(line number, path, lines of the block) of each mark; None for what is no block."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        mark = MARK.match(line)
        if not mark:
            continue
        fence = FENCE.match(lines[at + 1]) if at + 1 < len(lines) else None
        if not fence:
            yield at + 1, mark[1], None
            continue
        closing = fence[1]
        ends = (i for i in range(at + 2, len(lines)) if lines[i].strip() == closing)
        end = next(ends, None)
        yield at + 1, mark[1], None if end is None else lines[at + 2 : end]


def shape(lines):
    """Lines without the indentation that they share, and without blanks at their ends."""
    full = [line for line in lines if line.strip()]
    width = min((len(line) - len(line.lstrip()) for line in full), default=0)
    return [line[width:].rstrip() if line.strip() else "" for line in lines]


def occurs(block, text):
    """Whether the lines stand in the text one after another, all moved in by as much."""
    there, wanted = text.splitlines(), shape(block)
    windows = (there[i : i + len(wanted)] for i in range(len(there) - len(wanted) + 1))
    return bool(wanted) and any(shape(window) == wanted for window in windows)


def faults(text, root):
    """What is wrong with the quotes of a page, a line each."""
    for number, path, block in quotes(text):
        if block is None:
            yield f"{number}: no whole fenced block follows the mark"
        elif not (root / path).is_file():
            yield f"{number}: {path} is not there"
        elif not occurs(block, (root / path).read_text()):
            yield f"{number}: the block does not stand in {path}"


PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_quotes_stand_in_their_files(page):
    assert list(faults(page.read_text(), ROOT)) == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "add").glob("*.md")), ids=lambda p: p.name)
def test_pages_that_teach_quote_code(page):
    assert list(quotes(page.read_text()))


CODE = "class A {\n  int f() {\n    return 1;\n  }\n\n  int g();\n};\n"


@pytest.mark.parametrize(
    "page, fault",
    [
        ("<!-- from: a.h -->\n```cpp\nint f() {\n  return 1;\n}\n```\n", None),
        ("<!-- from: a.h -->\n```\n  }\n\n  int g();\n```\n", None),
        ("```cpp\nanything without a mark\n```\n", None),
        ("<!-- from: a.h -->\n```cpp\nint f() {\n  return 2;\n}\n```\n", "does not stand in a.h"),
        ("<!-- from: a.h -->\n```cpp\nint f() {\nreturn 1;\n}\n```\n", "does not stand in a.h"),
        ("<!-- from: a.h -->\n```cpp\n```\n", "does not stand in a.h"),
        ("<!-- from: b.h -->\n```cpp\nint f() {\n```\n", "b.h is not there"),
        ("<!-- from: a.h -->\n\n```cpp\nint f() {\n```\n", "no whole fenced block"),
        ("<!-- from: a.h -->\n```cpp\nint f() {\n", "no whole fenced block"),
    ],
)
def test_the_checker_itself(tmp_path, page, fault):
    (tmp_path / "a.h").write_text(CODE)
    found = list(faults(page, tmp_path))
    assert [fault in text for text in found] == ([True] if fault else [])
