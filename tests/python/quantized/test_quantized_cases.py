"""The table of quantized cases runs; tests/differential/quantized compares it with PyTorch."""

import warnings

import facula
import pytest
from quantized_cases import CASES, Inputs


@pytest.mark.parametrize("name", CASES)
def test_case_has_a_result(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert CASES[name](Inputs(facula)) is not None
