"""Sparse tensors beside PyTorch's: results, gradients and text, and the classes of errors."""

import warnings

import facula
import pytest
import torch
from sparse_cases import BY_VALUE, CASES, ERRORS, GRADIENTS, Inputs


def text_of(x, lib, by_value):
    """Everything a user sees: sizes, layout, indices, values; or layout and values alone."""
    if isinstance(x, (list, tuple)) and not isinstance(x, lib.Size):
        return "\n".join(text_of(item, lib, by_value) for item in x)
    if not isinstance(x, lib.Tensor):
        return repr(x)
    text = f"{x.layout} {x.to_dense()}" if by_value else repr(x)
    return text.replace("facula.", "torch.")


def outcome(case, lib, by_value=False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return text_of(case(Inputs(lib)), lib, by_value)


@pytest.mark.parametrize("name", CASES)
def test_results_are_pytorchs(name):
    by_value = name in BY_VALUE
    assert outcome(CASES[name], facula, by_value) == outcome(CASES[name], torch, by_value)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_pytorchs(name):
    assert outcome(GRADIENTS[name], facula) == outcome(GRADIENTS[name], torch)


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_of_pytorchs_classes(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as theirs:
            ERRORS[name](Inputs(torch))
        with pytest.raises(Exception) as ours:
            ERRORS[name](Inputs(facula))
    # NotImplementedError is a RuntimeError, and the other way round where both refuse.
    both = (RuntimeError, NotImplementedError)
    same = ours.type is theirs.type or (ours.type in both and theirs.type in both)
    assert same, f"{ours.value!r} for {theirs.value!r}"
