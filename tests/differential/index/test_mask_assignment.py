"""x[mask] = number in both libraries: values, classes of errors, and the node."""

import facula
import pytest
import torch

NUMBERS = (1.5, 3, True, 1 + 2j, -1, 300, float("nan"), 2**40)
MASKS = {
    "all of it": lambda lib: lib.tensor([[True, False, True], [False, True, False]]),
    "rows": lambda lib: lib.tensor([True, False]),
    "columns": lambda lib: (slice(None), lib.tensor([False, True, True])),
    "after an ellipsis": lambda lib: (..., lib.tensor([False, True, True])),
}


def assigned(lib, dtype, mask, number):
    """The values after the assignment, or the class of the error."""
    x = lib.arange(6).reshape(2, 3).to(getattr(lib, dtype))
    try:
        x[MASKS[mask](lib)] = number
    except Exception as error:
        return type(error).__name__
    return str(x.tolist())


@pytest.mark.parametrize("dtype", ["int64", "float32", "bool", "uint8", "complex64"])
@pytest.mark.parametrize("mask", MASKS)
def test_values(mask, dtype):
    for number in NUMBERS:
        ours, theirs = (assigned(lib, dtype, mask, number) for lib in (facula, torch))
        assert ours == theirs, number


@pytest.mark.parametrize("mask", MASKS)
def test_node(mask):
    found = []
    for lib in (facula, torch):
        x = lib.ones(2, 3, requires_grad=True)
        y = x * 2
        y[MASKS[mask](lib)] = 1.0
        y.sum().backward()
        found.append((y.grad_fn.name(), x.grad.tolist()))
    assert found[0] == found[1]


def test_a_mask_of_another_shape_raises():
    for lib in (facula, torch):
        with pytest.raises(IndexError):
            lib.ones(2, 3)[lib.tensor([True, False, True])] = 1.0
