"""Programs of autograd in both libraries: values, flags, classes of errors and of warnings."""

import importlib
import re
import warnings

import facula
import numpy as np
import pytest
import torch
from autograd_cases import (  # noqa: F401
    CASES,
    backward_and_grad,
    functions,
    functions_more,
    hooks,
    inference_and_modes,
    inplace,
    leaves_and_edges,
    nodes,
    saved_tensors,
    views_and_data,
)


def plain(text):
    """A text without addresses and the library's name."""
    return re.sub(r"0x[0-9a-f]+", "0x", str(text).replace("facula", "torch"))


def value_of(v):
    """Something that compares equal for equal results of both libraries."""
    if isinstance(v, (torch.Tensor, facula.Tensor)):
        numbers = v.detach().reshape(-1).tolist()
        rounded = [round(x, 5) if isinstance(x, float) else x for x in numbers]
        return tuple(v.shape), plain(v.dtype), rounded
    if isinstance(v, dict):
        return {k: value_of(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [value_of(x) for x in v]
    return v if isinstance(v, (int, float, type(None))) else plain(v)


def outcome(program, library):
    """What a program gives: its value, or the class of its error; and classes of warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = "value", value_of(program(library))
        except Exception as error:
            result = "error", type(error).__name__
        finally:
            library.set_grad_enabled(True)
            library.autograd.set_detect_anomaly(False)
    return result, sorted({type(w.message).__name__ for w in caught})


@pytest.mark.parametrize("name", CASES)
def test_program(name):
    """Both libraries do the same."""
    theirs, their_warnings = outcome(CASES[name], torch)
    ours, our_warnings = outcome(CASES[name], facula)
    assert ours == theirs
    assert our_warnings == their_warnings or name == "b_create"  # which is said once


def _old_jacobians(lib):
    """Jacobians by the names of old, of a function of a vector and of one of two inputs."""
    check = importlib.import_module(f"{lib.__name__}.autograd.gradcheck")
    x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
    y = lib.tensor([[3.0], [0.5]], dtype=lib.float64, requires_grad=True)

    def function(x, y):
        return (x**2).sum() * x * y.sum(), y * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            *check.get_numerical_jacobian(lambda i: function(*i), (x, y), eps=1e-6),
            *check.get_numerical_jacobian(lambda i: function(*i), (x, y), target=y, eps=1e-6),
            *check.get_numerical_jacobian_wrt_specific_input(
                function, 1, (x, y), function(x, y), 1e-6
            ),
        ]
        matrices, *flags = check.get_analytical_jacobian((x, y), function(x, y)[0])
    return [m.tolist() for m in (*found, *matrices)], flags


def test_jacobians_by_names_of_old():
    """The same matrices as PyTorch's."""
    (ours, our_flags), (theirs, their_flags) = _old_jacobians(facula), _old_jacobians(torch)
    assert our_flags == their_flags
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)
    check = importlib.import_module("facula.autograd.gradcheck")
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="grad_out"):
        check.get_analytical_jacobian((), facula.ones(1), grad_out=2.0)
