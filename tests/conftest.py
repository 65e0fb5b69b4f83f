"""Known gaps: tests that fail today, written down.

tests/known_gaps.tsv has a line for each: the end of a test's id (or all of it), a tab, the reason.
The lines of test_wrong_calls share a reason that says what differs, not why: run one to see.
They still run; one that passes is reported as XPASS, and its line should go.
"""

from pathlib import Path

import pytest

GAPS = Path(__file__).with_name("known_gaps.tsv")


def read_gaps():
    """Test ids and reasons, in the file's order."""
    if not GAPS.exists():
        return {}
    rows = (
        line.split("\t", 1) for line in GAPS.read_text().splitlines() if line and line[0] != "#"
    )
    return {name: reason for name, reason in rows}


def pytest_collection_modifyitems(items):
    gaps = read_gaps()
    for item in items:
        reason = gaps.get(item.nodeid.split("tests/", 1)[-1])
        if reason:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=False))
