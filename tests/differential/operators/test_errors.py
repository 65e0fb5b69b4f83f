"""The exception classes of failing calls next to PyTorch's."""

import facula
import pytest
import torch
from error_cases import CASES


def _raised(call, library):
    try:
        call(library)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("name", CASES)
def test_error_class(name):
    """Both raise, and the class is the same."""
    call = CASES[name][0]
    theirs, ours = _raised(call, torch), _raised(call, facula)
    assert theirs is not None, "PyTorch takes this call"
    assert type(ours).__name__ == type(theirs).__name__, f"{ours!r}; PyTorch: {theirs!r}"
