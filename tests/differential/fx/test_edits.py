"""Edited, matched, cut and annotated graphs are PyTorch's."""

import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from fx_in_both import load, plain  # noqa: E402

OURS, THEIRS = load("edits")
EDITS = list(zip(OURS.EDITS, THEIRS.EDITS, strict=True))


@pytest.mark.parametrize("ours, theirs", EDITS, ids=[edit.__name__ for edit, _ in EDITS])
def test_an_edit_gives_what_pytorch_gives(ours, theirs):
    with warnings.catch_warnings():  # PyTorch's own
        warnings.simplefilter("ignore")
        expected = theirs()
    assert plain(ours()) == plain(expected)
