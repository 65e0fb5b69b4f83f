"""Dtypes whose elements have no arithmetic: bits, narrow integers, float8, float4, bcomplex32."""

import copy
import io
import math
import pickle

import facula
import numpy as np
import pytest

OPAQUE = ("bits8", "bits16", "bits1x8", "bits2x4", "bits4x2")
NARROW = tuple(f"{sign}int{bits}" for sign in ("u", "") for bits in range(1, 8))
# Largest number, step at 1, least normal and least number of all.
FLOAT8 = {
    "float8_e4m3fn": (448, 2**-3, 2**-6, 2**-9),
    "float8_e5m2": (57344, 2**-2, 2**-14, 2**-16),
    "float8_e4m3fnuz": (240, 2**-3, 2**-7, 2**-10),
    "float8_e5m2fnuz": (57344, 2**-2, 2**-15, 2**-17),
    "float8_e8m0fnu": (2**127, 1, 2**-127, 2**-127),
}
FLOATS = (*FLOAT8, "float4_e2m1fn_x2")
MOVED_ONLY = (*OPAQUE, *NARROW, "float4_e2m1fn_x2")
ALL = (*OPAQUE, *NARROW, *FLOATS, "bcomplex32")


def dtype(name):
    return getattr(facula, name)


def integers_of(name):
    """The plain dtype of the same size."""
    return {1: facula.uint8, 2: facula.int16, 4: facula.int32}[dtype(name).itemsize]


def codes(name):
    return facula.arange(12, dtype=integers_of(name))


@pytest.mark.parametrize("name", ALL)
def test_facts(name):
    d = dtype(name)
    assert repr(d) == f"facula.{name}"
    assert d.itemsize == {"bits16": 2, "bcomplex32": 4}.get(name, 1)
    assert d.is_floating_point == (name in FLOATS)
    assert d.is_complex == (name == "bcomplex32")
    assert pickle.loads(pickle.dumps(d)) is d and copy.deepcopy(d) is d
    if name in OPAQUE:
        with pytest.raises(RuntimeError):
            _ = d.is_signed
    else:
        assert d.is_signed == (not name.startswith("uint") and name != "float8_e8m0fnu")


@pytest.mark.parametrize("name", ALL)
def test_no_default(name):
    with pytest.raises(TypeError):
        facula.set_default_dtype(dtype(name))
    assert facula.get_default_dtype() is facula.float32


def test_aliases_and_parts():
    assert facula.bit is facula.uint1
    assert facula.bcomplex32.to_real() is facula.bfloat16
    assert facula.bfloat16.to_complex() is facula.bcomplex32
    assert facula.uint4.to_real() is facula.uint4
    for name in ("uint4", "float8_e5m2", "bits8", "int32", "bool"):
        with pytest.raises(RuntimeError):
            dtype(name).to_complex()


@pytest.mark.parametrize("name", FLOAT8)
def test_finfo(name):
    largest, step, normal, least = FLOAT8[name]
    f = facula.finfo(dtype(name))
    assert (f.max, f.eps, f.tiny, f.smallest_subnormal, f.bits) == (largest, step, normal, least, 8)
    assert f.min == (normal if name == "float8_e8m0fnu" else -largest)
    assert f.dtype == name


@pytest.mark.parametrize("name", MOVED_ONLY)
def test_no_limits(name):
    for limits in (facula.finfo, facula.iinfo):
        with pytest.raises(TypeError):
            limits(dtype(name))


# --- what only moves elements

MOVES = {
    "clone": lambda x: x.clone(),
    "contiguous": lambda x: x.reshape(3, 4).t().contiguous(),
    "copy_": lambda x: facula.empty_like(x).copy_(x),
    "copy_ between strides": lambda x: facula.empty_like(x.view(3, 4)).t().copy_(x.view(4, 3)),
    "cat": lambda x: facula.cat([x[3:], x]),
    "stack": lambda x: facula.stack([x, x], 1),
    "slice": lambda x: x[2:9:3],
    "select": lambda x: x.view(3, 4)[:, 1],
    "index": lambda x: x[facula.tensor([3, 0, -1])],
    "mask": lambda x: x[facula.arange(12) % 3 == 0],
    "index_select": lambda x: x.index_select(0, facula.tensor([5, 5])),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(2),
    "where": lambda x: facula.where(facula.arange(12) > 4, x, x.flip(0)),
    "expand": lambda x: x.view(12, 1).expand(12, 2).clone(),
    "repeat": lambda x: x.repeat(2),
    "deepcopy": copy.deepcopy,
    "zeros": lambda x: facula.zeros_like(x),
    "zero_": lambda x: x.clone().zero_(),
    "assignment": lambda x: assigned(x.clone(), x),
}


def assigned(to, x):
    to[2:5] = x[7:10]
    return to


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("move", MOVES)
def test_moves(name, move):
    plain = codes(name)
    got = MOVES[move](plain.view(dtype(name)))
    assert got.dtype == dtype(name)
    assert facula.equal(got.view(integers_of(name)), MOVES[move](plain))


@pytest.mark.parametrize("name", ALL)
def test_views(name):
    d, plain = dtype(name), facula.arange(4, dtype=facula.int32)
    seen = plain.view(d)
    assert seen.shape == (16 // d.itemsize,) and seen.data_ptr() == plain.data_ptr()
    assert facula.equal(seen.view(facula.int32), plain)
    assert facula.empty(2, 3, dtype=d).element_size() == d.itemsize


@pytest.mark.parametrize("name", ALL)
def test_files(name):
    x = codes(name).view(dtype(name))
    stream = io.BytesIO()
    facula.save({"x": x, "d": x.dtype}, stream)
    stream.seek(0)
    read = facula.load(stream)
    assert read["d"] is x.dtype
    for got in (read["x"], pickle.loads(pickle.dumps(x))):
        assert got.dtype == x.dtype
        assert facula.equal(got.view(integers_of(name)), codes(name))


# --- what raises

REFUSED = {
    "ones": lambda x: facula.ones_like(x),
    "fill": lambda x: x.fill_(1),
    "to float": lambda x: x.float(),
    "from float": lambda x: facula.ones(12).to(x.dtype),
    "add": lambda x: x + x,
    "less": lambda x: x < x,
    "sum": lambda x: x.sum(),
    "abs": lambda x: x.abs(),
    "sort": lambda x: x.sort(),
    "matmul": lambda x: x @ x,
    "item": lambda x: x[0].item(),
    "list": lambda x: x.tolist(),
    "random": lambda x: x.random_(),
    "uniform": lambda x: x.uniform_(),
    "any": lambda x: x.any(),
    "isnan": lambda x: x.isnan(),
    "unique": lambda x: x.unique(),
}


@pytest.mark.parametrize("name", MOVED_ONLY)
@pytest.mark.parametrize("call", REFUSED)
def test_refused(name, call):
    x = codes(name).view(dtype(name))
    with pytest.raises(NotImplementedError):
        REFUSED[call](x)


ARITHMETIC = ("add", "less", "sum", "sort", "matmul", "random", "uniform", "unique")


@pytest.mark.parametrize("name", FLOAT8)
@pytest.mark.parametrize("call", ARITHMETIC)
def test_no_arithmetic(name, call):
    with pytest.raises(NotImplementedError):
        REFUSED[call](codes(name).view(dtype(name)))


@pytest.mark.parametrize("name", ALL)
def test_numpy_has_none(name):
    with pytest.raises(TypeError, match="unsupported ScalarType"):
        codes(name).view(dtype(name)).numpy()


DLPACK_AS = {
    **{name: name for name in FLOATS},
    **{name: "uint8" if name[0] == "u" else "int8" for name in NARROW},
}


@pytest.mark.parametrize("name", ALL)
def test_dlpack(name):
    x = codes(name).view(dtype(name))
    if name not in DLPACK_AS:
        with pytest.raises(BufferError):
            facula.from_dlpack(x)
        return
    got = facula.from_dlpack(x)
    assert got.dtype == dtype(DLPACK_AS[name]) and got.data_ptr() == x.data_ptr()


PROMOTED = [
    ("uint4", "float32", "float32"),
    ("uint1", "bfloat16", "bfloat16"),
    ("uint4", "float4_e2m1fn_x2", "float4_e2m1fn_x2"),
    ("bcomplex32", "int64", "bcomplex32"),
    ("bcomplex32", "bool", "bcomplex32"),
    ("bcomplex32", "bfloat16", "bcomplex32"),
    ("bcomplex32", "float16", "complex64"),
    ("bcomplex32", "complex32", "complex64"),
    ("bcomplex32", "float64", "complex128"),
]
UNPROMOTED = [
    ("uint4", "uint8"),
    ("uint4", "bool"),
    ("uint4", "uint5"),
    ("uint7", "complex64"),
    ("uint7", "float8_e5m2"),
    ("int4", "float32"),
    ("int4", "int8"),
    ("bits8", "uint8"),
    ("bits8", "float32"),
    ("bits8", "bits16"),
    ("float8_e4m3fnuz", "float32"),
    ("float8_e8m0fnu", "bool"),
    ("float8_e8m0fnu", "float8_e5m2"),
    ("float4_e2m1fn_x2", "float32"),
]


@pytest.mark.parametrize(("a", "b", "wanted"), PROMOTED)
def test_promotion(a, b, wanted):
    assert facula.promote_types(dtype(a), dtype(b)) is dtype(wanted)
    assert facula.promote_types(dtype(b), dtype(a)) is dtype(wanted)


@pytest.mark.parametrize(("a", "b"), UNPROMOTED)
def test_no_promotion(a, b):
    for pair in ((a, b), (b, a)):
        with pytest.raises(RuntimeError):
            facula.promote_types(*map(dtype, pair))
    x, y = (facula.zeros(2, dtype=dtype(name)) for name in (a, b))
    with pytest.raises(RuntimeError):
        _ = x + y


# --- the formats


def decoded(name, code):
    """The number of a float8's code, by the format's definition."""
    if name == "float8_e8m0fnu":
        return math.nan if code == 255 else 2.0 ** (code - 127)
    exponents, mantissas = int(name[8]), int(name[10])
    sign = -1.0 if code & 0x80 else 1.0
    exponent, mantissa = (code & 0x7F) >> mantissas, code & ((1 << mantissas) - 1)
    bias = (1 << (exponents - 1)) - (not name.endswith("fnuz"))
    top = exponent == (1 << exponents) - 1
    if name.endswith("fnuz") and code == 0x80:
        return math.nan
    if name == "float8_e4m3fn" and code & 0x7F == 0x7F:
        return math.nan
    if name == "float8_e5m2" and top:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissas)
    return sign * (1 + mantissa / (1 << mantissas)) * 2.0 ** (exponent - bias)


@pytest.mark.parametrize("name", FLOAT8)
def test_codes(name):
    """All codes have their number, in every float dtype that holds it, and come back from it."""
    stored = facula.arange(256, dtype=facula.uint8).view(dtype(name))
    wanted = np.array([decoded(name, code) for code in range(256)])
    for wide in (facula.float32, facula.float64, facula.bfloat16):
        np.testing.assert_array_equal(stored.to(wide).double().numpy(), wanted)
    back = stored.double().to(dtype(name)).view(facula.uint8)
    same = back == stored.view(facula.uint8)
    assert bool((same | stored.isnan()).all()) and bool(back.view(dtype(name)).isnan()[~same].all())


@pytest.mark.parametrize("name", [n for n in FLOAT8 if n != "float8_e8m0fnu"])
def test_rounding(name):
    """Half way between neighbours goes to the even code, anything else to the nearer."""
    positive = [decoded(name, code) for code in range(128)]
    finite = [v for v in positive if math.isfinite(v)]
    for code, (low, high) in enumerate(zip(finite, finite[1:], strict=False)):
        middle = (low + high) / 2
        even = code + code % 2
        near = [np.nextafter(np.float32(middle), np.float32(end)) for end in (low, high)]
        got = facula.tensor([near[0], middle, near[1]]).to(dtype(name)).view(facula.uint8).tolist()
        assert got == [code, even, code + 1], (low, high)


BEYOND = {
    "float8_e4m3fn": {449: 0x7E, math.inf: 0x7E, -math.inf: 0xFE, -0.0: 0x80},
    "float8_e5m2": {61440: 0x7C, math.inf: 0x7C, -math.inf: 0xFC, -0.0: 0x80},
    "float8_e4m3fnuz": {247: 0x7F, 248: 0x80, math.inf: 0x80, -math.inf: 0x80, -0.0: 0, -1e-9: 0},
    "float8_e5m2fnuz": {61439: 0x7F, 61440: 0x80, math.inf: 0x80, -1e9: 0x80, -0.0: 0, -1e-9: 0},
    "float8_e8m0fnu": {0.0: 0, -4.0: 129, 1.5: 128, 1.49: 127, math.inf: 255, 1e-45: 0, 3e38: 255},
}


@pytest.mark.parametrize("name", FLOAT8)
def test_beyond_the_range(name):
    values = facula.tensor(list(BEYOND[name]), dtype=facula.float64)
    assert values.to(dtype(name)).view(facula.uint8).tolist() == list(BEYOND[name].values())


@pytest.mark.parametrize("name", FLOAT8)
def test_tests_of_float8(name):
    """What PyTorch runs on float8: comparisons, tests and whatever takes a number."""
    x = facula.tensor([1.0, 2.0, 1.0, 4.0]).to(dtype(name))
    assert (x == x.flip(0)).tolist() == [False] * 4
    assert (x == 1).tolist() == [True, False, True, False]
    assert (x != 1).tolist() == [False, True, False, True]
    assert not x.isnan().any() and not x.isinf().any() and x.isfinite().all()
    assert facula.equal(x, x.clone()) and not facula.equal(x, x.roll(1))
    assert x.tolist() == [1.0, 2.0, 1.0, 4.0] and x[3].item() == 4.0
    assert facula.full((2,), 2.0, dtype=x.dtype).tolist() == [2.0, 2.0]
    assert x.any() and x.all() and x.count_nonzero() == 4
    twice = x.index_put((facula.tensor([0, 0]),), x[1:3], accumulate=True)
    assert twice.tolist() == [4.0, 2.0, 1.0, 4.0]
    if name != "float8_e8m0fnu":
        assert (-x.float()).to(x.dtype).abs().tolist() == x.tolist()


def test_bcomplex32():
    z = facula.tensor([1 + 2j, 3 - 1j], dtype=facula.bcomplex32)
    assert z.tolist() == [1 + 2j, 3 - 1j] and z[0].item() == 1 + 2j
    assert z.real.dtype is facula.bfloat16 and z.real.tolist() == [1, 3]
    assert z.imag.tolist() == [2, -1] and facula.view_as_real(z).shape == (2, 2)
    assert (z == z).all() and (z != z.flip(0)).all()
    assert facula.equal(z.to(facula.complex64).to(facula.bcomplex32), z)
    assert z.conj().resolve_conj().tolist() == [1 - 2j, 3 + 1j]


REPRS = {
    "float8_e4m3fnuz": "tensor([0.0000, 0.0010, 0.0020], dtype=facula.float8_e4m3fnuz)",
    "float4_e2m1fn_x2": "tensor([0., 1., 2.], dtype=facula.float4_e2m1fn_x2)",
    "bits8": "tensor([0, 1, 2], dtype=facula.bits8)",
    "uint4": "tensor([0, 1, 2], dtype=facula.uint4)",
    "int3": "tensor([0, 1, 2], dtype=facula.int3)",
}


@pytest.mark.parametrize("name", REPRS)
def test_repr(name):
    facula.set_printoptions(profile="default")
    assert repr(facula.arange(3, dtype=facula.uint8).view(dtype(name))) == REPRS[name]


@pytest.mark.parametrize("dim", [None, 0, 1])
def test_norms_of_bcomplex32_are_refused(dim):
    """Their loop stores floats, for which bfloat16 results have no room."""
    x = facula.ones(3, 4, dtype=facula.bcomplex32)
    with pytest.raises(NotImplementedError, match="not implemented for 'BComplex32'"):
        facula.linalg.vector_norm(x, dim=dim)
    with pytest.raises(NotImplementedError, match="not implemented for 'BComplex32'"):
        facula._foreach_norm([x])
