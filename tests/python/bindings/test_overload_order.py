"""A 0-dim tensor fits parameters of tensors and of numbers: overloads with tensors are tried first.

Which overload was taken is seen by a dispatch mode.
"""

import facula
import pytest
from facula.utils._python_dispatch import TorchDispatchMode


class Names(TorchDispatchMode):
    def __init__(self):
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


X, HALF, ONE = facula.rand(4), facula.tensor(0.5), facula.tensor(1)


@pytest.mark.parametrize(
    "call, wanted",
    [
        (lambda: facula.linspace(HALF, ONE, 3), "aten.linspace.Tensor_Tensor"),
        (lambda: facula.linspace(0, HALF, 3), "aten.linspace.Scalar_Tensor"),
        (lambda: facula.linspace(HALF, 1, 3), "aten.linspace.Tensor_Scalar"),
        (lambda: facula.linspace(0, 1, 3), "aten.linspace.default"),
        (lambda: facula.logspace(0, HALF, 3), "aten.logspace.Scalar_Tensor"),
        (lambda: facula.normal(X, HALF), "aten.normal.Tensor_Tensor"),
        (lambda: facula.normal(0.0, HALF), "aten.normal.float_Tensor"),
        (lambda: facula.pow(X, HALF), "aten.pow.Tensor_Tensor"),
        (lambda: X.clone().bernoulli_(HALF), "aten.bernoulli_.Tensor"),
        (lambda: facula.max(X, ONE * 0), "aten.maximum.default"),
    ],
)
def test_the_overload_with_tensors_is_taken(call, wanted):
    with Names() as mode:
        call()
    assert wanted in mode.seen, mode.seen
