"""Reference modules keep and round their weights as PyTorch's."""

import re

import facula
import pytest
import reference_module_cases as cases
import torch
from same_program import error_class, outcome


def numbers_apart(text):
    """A text without its numbers, and the numbers: sums may differ in their last bits."""
    number = r"-?\d+\.\d*(?:e[+-]?\d+)?"
    return re.sub(number, "#", text), [float(found) for found in re.findall(number, text)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", cases.programs())
def test_programs_give_the_same(name):
    ours, theirs = (outcome(cases.programs()[name], lib) for lib in (facula, torch))
    assert error_class(theirs) == theirs, theirs
    (text, found), (expected_text, expected) = numbers_apart(ours), numbers_apart(theirs)
    assert text == expected_text
    assert found == pytest.approx(expected, rel=1e-4, abs=1.1e-4)  # tensors show four digits
