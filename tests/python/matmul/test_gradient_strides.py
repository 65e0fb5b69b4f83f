"""Gradients of products have their factors' own layouts, and leaves take them over uncopied."""

import facula
import pytest
from facula.utils import memory

PRODUCTS = {
    "mm": facula.mm,
    "addmm": lambda a, b: facula.addmm(facula.ones(5, dtype=a.dtype), a, b, alpha=2),
    "linear": lambda a, b: facula.nn.functional.linear(a, b.t()),
}
ROWS, COLUMNS = False, True


def factor(rows, columns, column_major, dtype):
    """A leaf of the shape (rows, columns) that lies by rows or by columns."""
    if column_major:
        return facula.ones(columns, rows, dtype=dtype).t().detach().requires_grad_()
    return facula.ones(rows, columns, dtype=dtype).requires_grad_()


@pytest.mark.parametrize("dtype", [facula.float32, facula.complex64])
@pytest.mark.parametrize("right", [ROWS, COLUMNS])
@pytest.mark.parametrize("left", [ROWS, COLUMNS])
@pytest.mark.parametrize("product", PRODUCTS)
def test_gradients_of_products_lie_as_their_factors(product, left, right, dtype):
    a, b = factor(3, 4, left, dtype), factor(4, 5, right, dtype)
    y = PRODUCTS[product](a, b)
    for x, g in zip((a, b), facula.autograd.grad(y, [a, b], facula.ones_like(y)), strict=True):
        assert g.stride() == x.stride()


def turned_gradient(keep):
    """A function whose gradient is the transpose of a new tensor, which `keep` is shown."""

    class Turned(facula.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            base = facula.ones(4, 8)
            keep(base)
            return base.t()

    return Turned.apply


def column_major_leaf():
    return facula.ones(4, 8).t().detach().requires_grad_()


def test_a_leaf_takes_over_the_transpose_of_a_product():
    size = 512
    weight, x = facula.ones(size, size, requires_grad=True), facula.ones(2, size)
    y, ones = facula.nn.functional.linear(x, weight), facula.ones(2, size)
    memory.reset_peak_memory_stats()
    before = memory.memory_stats()["peak_allocated"]
    y.backward(ones)
    # Its own memory, and no other matrix while it is made; packed operands take the rest.
    assert memory.memory_stats()["peak_allocated"] - before < 2 * 4 * size * size
    assert weight.grad._base is None


def test_a_leaf_copies_a_gradient_that_somebody_else_has():
    weight = facula.ones(8, 4, requires_grad=True)
    kept = []
    weight.register_hook(lambda g: kept.append(g))
    facula.nn.functional.linear(facula.ones(3, 4), weight).sum().backward()
    weight.grad.zero_()
    assert facula.equal(kept[0], facula.full((8, 4), 3.0))


def test_a_leaf_copies_a_gradient_whose_base_somebody_else_has():
    leaf, bases = column_major_leaf(), []
    turned_gradient(bases.append)(leaf).sum().backward()
    leaf.grad.zero_()
    assert facula.equal(bases[0], facula.ones(4, 8))
