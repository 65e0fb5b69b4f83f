"""Sparsifiers, schedulers and pruners find the masks, weights and texts that PyTorch finds."""

import re

import facula
import pruning_cases
import pytest
import torch
from same_program import error_class, outcome, programs

PROGRAMS = programs(vars(pruning_cases))


def numbers_apart(text):
    """A text without its numbers, and the numbers: sums may differ in their last bits."""
    number = r"-?\d+\.\d*(?:e[+-]?\d+)?"
    return re.sub(number, "#", text), [float(found) for found in re.findall(number, text)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_the_same(name):
    ours, theirs = (outcome(PROGRAMS[name], lib) for lib in (facula, torch))
    assert error_class(theirs) == theirs, theirs
    (text, found), (expected_text, expected) = numbers_apart(ours), numbers_apart(theirs)
    assert text == expected_text
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", pruning_cases.ERRORS)
def test_wrong_calls_raise_the_same_class(name):
    ours, theirs = (outcome(pruning_cases.ERRORS[name], lib) for lib in (facula, torch))
    assert error_class(theirs) != theirs
    assert error_class(ours) == error_class(theirs)
