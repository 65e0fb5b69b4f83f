"""Gradients where exponentials overflow, and where a sum of rounded parts is not good enough."""

import facula
import pytest
from facula.func import jvp

# Alike and huge, where neighbours of float32 are 1e-3 apart, and rising so that the first sum is
# lost beside the last.
LINES = {"huge": [1e4, 1e4, 1e4, 1e4], "rising": [-200.0, -100.0, 0.0, 1.0]}


@pytest.mark.parametrize("name", LINES)
def test_complex_logcumsumexp_is_as_the_real_one(name):
    """Complex numbers without imaginary parts have the real derivatives, zeros included."""
    x, weights = facula.tensor(LINES[name]), facula.tensor([1.0, -2.0, 0.0, 0.5])

    def sums(t):
        return facula.logcumsumexp(t, 0)

    def gradient(t, w):
        t = t.clone().requires_grad_()
        return facula.autograd.grad(sums(t), t, w)[0]

    expected = gradient(x, weights)
    got = gradient(x.cfloat(), weights.cfloat())
    facula.testing.assert_close(got.real, expected, rtol=1e-3, atol=2e-3)
    assert got.imag.abs().max() < 1e-3
    tangent = jvp(sums, (x,), (weights,))[1]
    facula.testing.assert_close(
        jvp(sums, (x.cfloat(),), (weights.cfloat(),))[1].real, tangent, rtol=1e-3, atol=2e-3
    )


@pytest.mark.parametrize("rows", [(), (3,)], ids=["vector", "matrix"])
def test_gradient_before_a_batch_is_rounded_once(rows):
    """The gradient of what multiplies a batch from the left is one product in bfloat16."""
    facula.manual_seed(0)
    batch = facula.randn(50, 10, 5).bfloat16()
    x = facula.randn(*rows, 10).bfloat16().requires_grad_()
    y = x @ batch
    weights = facula.randn(y.shape).bfloat16()
    got = facula.autograd.grad(y, x, weights)[0]
    terms = facula.einsum(
        "bkp,bnp->nk", batch.double(), weights.double().reshape(50, -1, 5)
    ).reshape(x.shape)
    facula.testing.assert_close(got.double(), terms, rtol=2**-8, atol=1e-5)
    facula.testing.assert_close(y, (x.double() @ batch.double()).bfloat16(), rtol=2**-7, atol=1e-3)
    assert y.is_contiguous() and y.shape == (50, *rows, 5)
