"""Autocast: which precision operators run in, and what becomes of weights."""

import facula


def test_matrix_product_runs_in_lower_precision():
    a, b = facula.rand(4, 5), facula.rand(5, 6)
    with facula.autocast("cpu", dtype=facula.bfloat16):
        y = a @ b
        assert y.dtype == facula.bfloat16
        assert (y + a[:, :1]).dtype == facula.float32
    assert (a @ b).dtype == facula.float32
    expected = a.to(facula.bfloat16) @ b.to(facula.bfloat16)
    assert y.tolist() == expected.tolist()


def test_doubles_and_integers_are_left_alone():
    with facula.autocast("cpu", dtype=facula.bfloat16):
        assert (
            facula.ones(2, 2, dtype=facula.float64)
            .mm(facula.ones(2, 2, dtype=facula.float64))
            .dtype
            == facula.float64
        )


def test_promotion_takes_the_widest():
    with facula.autocast("cpu", dtype=facula.bfloat16):
        out = facula.cat([facula.ones(2, dtype=facula.bfloat16), facula.ones(2)])
    assert out.dtype == facula.float32


def test_gradients_and_cached_weights():
    w = facula.rand(3, 3, requires_grad=True)
    x = facula.rand(2, 3)
    with facula.autocast("cpu", dtype=facula.bfloat16):
        ((x @ w).sum() + (x @ w).sum()).backward()
    assert w.grad.dtype == facula.float32
    first = w.grad.clone()
    with facula.no_grad():
        w.mul_(0)
    w.grad = None
    with facula.autocast("cpu", dtype=facula.bfloat16):
        y = x @ w  # not the product with the weight before it was changed
    assert y.float().abs().sum().item() == 0.0
    assert first.abs().sum().item() > 0


def test_off_inside_on():
    a = facula.rand(2, 2)
    with facula.autocast("cpu", dtype=facula.bfloat16):
        with facula.autocast("cpu", enabled=False):
            assert a.mm(a).dtype == facula.float32
        assert a.mm(a).dtype == facula.bfloat16
