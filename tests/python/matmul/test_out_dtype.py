"""Products with results of a dtype that holds the sums, and products of float8."""

import facula
import pytest

CALLS = {
    "mm": lambda c, a, b, **k: facula.mm(a[0], b[0], **k),
    "bmm": lambda c, a, b, **k: facula.bmm(a, b, **k),
    "addmm": lambda c, a, b, **k: facula.addmm(c[0], a[0], b[0], beta=2, alpha=3, **k),
    "baddbmm": lambda c, a, b, **k: facula.baddbmm(c, a, b, beta=2, alpha=3, **k),
}


def operands(dtype):
    facula.manual_seed(0)
    shapes = ((2, 5, 7), (2, 5, 40), (2, 40, 7))
    return [facula.randn(*shape).to(dtype) for shape in shapes]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("dtype", [facula.float16, facula.bfloat16])
def test_sums_stay_in_float32(call, dtype):
    c, a, b = operands(dtype)
    got = CALLS[call](c, a, b, out_dtype=facula.float32)
    assert got.dtype is facula.float32
    wanted = CALLS[call](c.float(), a.float(), b.float())
    assert facula.equal(got, wanted)
    into = facula.empty(0)
    assert CALLS[call](c, a, b, out_dtype=facula.float32, out=into) is into
    assert facula.equal(into, wanted)


@pytest.mark.parametrize("call", CALLS)
def test_own_dtype_and_others(call):
    c, a, b = operands(facula.float32)
    same = CALLS[call](c, a, b, out_dtype=facula.float32)
    assert facula.equal(same, CALLS[call](c, a, b))
    for dtype in (facula.float64, facula.float16, facula.int32):
        with pytest.raises(RuntimeError, match="out_dtype"):
            CALLS[call](c, a, b, out_dtype=dtype)


def test_gradients_have_the_dtype_of_the_factors():
    _, a, b = (t.requires_grad_() for t in operands(facula.bfloat16))
    facula.bmm(a, b, facula.float32).sum().backward()
    assert a.grad.dtype is b.grad.dtype is facula.bfloat16
    assert a.grad.isfinite().all()


FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


@pytest.mark.parametrize("name", FLOAT8)
def test_float8_is_rounded_once(name):
    dtype = getattr(facula, name)
    c, a, b = operands(dtype)
    for call in ("mm", "addmm"):
        wide = CALLS[call](c.float(), a.float(), b.float()).to(dtype)
        assert facula.equal(CALLS[call](c, a, b).view(facula.uint8), wide.view(facula.uint8))
    product = (a * a).view(facula.uint8)
    assert facula.equal(product, (a.float() * a.float()).to(dtype).view(facula.uint8))
