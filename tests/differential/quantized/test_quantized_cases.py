"""The table of quantized cases beside PyTorch: results as they are printed."""

import warnings

import facula
import pytest
import torch
from quantized_cases import CASES, Inputs


def _text(name, lib):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return repr(CASES[name](Inputs(lib))).replace("facula.", "torch.")


@pytest.mark.parametrize("name", CASES)
def test_results_are_pytorchs(name):
    assert _text(name, facula) == _text(name, torch)
