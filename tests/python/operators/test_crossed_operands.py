"""Elementwise calls whose operands lie across: neighbours along different dimensions."""

import facula
import pytest

DTYPES = (facula.float32, facula.float64, facula.bfloat16, facula.int8, facula.complex128)
CASES = {
    "transposed": ((70, 300), (1, 0)),
    "odd sizes": ((33, 129), (1, 0)),
    "short": ((16, 17), (1, 0)),
    "shorter": ((5, 400), (1, 0)),
    "channels last": ((3, 40, 7, 9), (0, 2, 3, 1)),
    "turned": ((20, 30, 40), (2, 1, 0)),
    "batches": ((4, 50, 60), (0, 2, 1)),
}


def numbers(shape, dtype, seed):
    facula.manual_seed(seed)
    return facula.randint(-9, 9, shape).to(dtype)


def lying(t, order):
    """The same numbers in memory whose dimensions have another order."""
    back = sorted(range(t.dim()), key=order.__getitem__)
    return t.permute(order).contiguous().permute(back)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("threads", [1, 3])
def test_values_do_not_depend_on_how_operands_lie(case, dtype, threads):
    shape, order = CASES[case]
    x, y, z = (numbers(shape, dtype, seed) for seed in range(3))
    before = facula.get_num_threads()
    facula.set_num_threads(threads)
    try:
        across = lying(y, order)
        assert across.equal(y)
        assert (x + across).equal(x + y)
        assert (x * lying(z, order) + across).equal(x * z + y)
        mask = across.real > 0 if dtype.is_complex else across > 0
        assert facula.where(mask, x, across).equal(facula.where(mask.contiguous(), x, y))
        assert facula.addcmul(x, across, lying(z, order)).equal(facula.addcmul(x, y, z))
        assert x.clone().add_(across).equal(x + y)
        assert (x[:, 1:] - across[:, 1:]).equal(x[:, 1:] - y[:, 1:])
    finally:
        facula.set_num_threads(before)


def test_broadcast_operands_may_lie_across():
    x, y = facula.randn(4, 64, 80), facula.randn(80, 64).t()
    assert (x + y).equal(x + y.contiguous())
    column = facula.randn(4, 1, 64).transpose(1, 2)
    assert facula.addcmul(y.expand(4, 64, 80), x, column).equal(
        facula.addcmul(y.contiguous().expand(4, 64, 80), x, column.contiguous())
    )
