"""Type promotion and conversions, against rules written here and against NumPy's casts."""

import itertools

import facula
import numpy as np
import pytest

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
ALL = ("bool", *INTEGERS, *FLOATS, *COMPLEX)
NUMPY = tuple(name for name in ALL if name != "bfloat16")


def dtype(name):
    return getattr(facula, name)


def name_of(d):
    return str(d).rpartition(".")[2]


def category(name):
    """0 for bool, 1 for integers, 2 for floating point, 3 for complex."""
    kinds = (("bool",), INTEGERS, FLOATS, COMPLEX)
    return next(i for i, kind in enumerate(kinds) if name in kind)


def wider_float(a, b):
    """Of two floating point dtypes; neither half holds the other."""
    return "float32" if {a, b} == {"float16", "bfloat16"} else max(a, b, key=FLOATS.index)


def promoted(a, b):
    """The dtype that holds the values of both."""
    low, high = sorted((a, b), key=category)
    if category(high) == 3:
        wide = "float64" in (a, b) or "complex128" in (a, b)
        return "complex128" if wide else "complex64"
    if category(low) != category(high):
        return high
    if category(high) == 2:
        return wider_float(a, b)
    if "uint8" in (a, b) and a != b and category(a) == 1:
        signed = b if a == "uint8" else a
        return "int16" if signed == "int8" else signed
    return max(a, b, key=ALL.index)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(ALL, ALL)))
def test_promotion_of_tensors(a, b):
    """promote_types, result_type and an operator agree with the rule."""
    wanted = promoted(a, b)
    x, y = facula.ones(2, dtype=dtype(a)), facula.ones(2, dtype=dtype(b))
    assert name_of(facula.promote_types(dtype(a), dtype(b))) == wanted
    assert name_of(facula.result_type(x, y)) == wanted
    assert name_of((x + y).dtype) == wanted
    assert name_of(facula.cat([x, y]).dtype) == wanted


@pytest.mark.parametrize(("a", "b"), list(itertools.product(ALL, ALL)))
def test_zero_dim_tensors_are_weak(a, b):
    """A 0-dim tensor changes the dtype only when its category is higher."""
    x, y = facula.ones(2, dtype=dtype(a)), facula.ones((), dtype=dtype(b))
    wanted = promoted(a, b) if category(b) > category(a) else a
    if b.startswith("complex") and a in COMPLEX_OF:  # adds an imaginary part, and no digits
        wanted = COMPLEX_OF[a]
    assert name_of((x * y).dtype) == wanted
    assert name_of((y * x).dtype) == wanted
    assert name_of(facula.result_type(x, y)) == wanted


# PyTorch has a type of two bfloat16 without arithmetic.
COMPLEX_OF = {
    "float16": "complex32",
    "bfloat16": "complex64",
    "float32": "complex64",
    "float64": "complex128",
}
NUMBERS = {True: "bool", 3: "int64", 2.5: "float32", 1j: "complex64"}


@pytest.mark.parametrize("a", ALL)
@pytest.mark.parametrize("number", [True, 3, 2.5, 1j], ids=["bool", "int", "float", "complex"])
def test_python_numbers_are_weaker(a, number):
    """A number changes the dtype only when its category is higher, and then to the default one."""
    kind = NUMBERS[number]
    wanted = promoted(a, kind) if category(kind) > category(a) else a
    if kind == "complex64" and a in ("float16", "bfloat16"):
        wanted = "complex32" if a == "float16" else "complex64"
    assert name_of((facula.ones(2, dtype=dtype(a)) * number).dtype) == wanted


def test_default_dtype_rules_numbers():
    before = facula.get_default_dtype()
    facula.set_default_dtype(facula.float64)
    try:
        assert facula.tensor(1.5).dtype == facula.float64
        assert (facula.ones(2, dtype=facula.int64) * 1.5).dtype == facula.float64
        assert (facula.ones(2, dtype=facula.int64) / 2).dtype == facula.float64
        assert facula.tensor(1j).dtype == facula.complex128
    finally:
        facula.set_default_dtype(before)


@pytest.mark.parametrize("a", ALL)
def test_results_of_operator_kinds(a):
    """True division gives floating point, sums of integers int64, comparisons bool."""
    x = facula.ones(2, dtype=dtype(a))
    floating = a if category(a) >= 2 else "float32"
    assert name_of((x / x).dtype) == floating
    assert name_of(x.sum().dtype) == (a if category(a) >= 2 else "int64")
    assert name_of((x == x).dtype) == "bool"
    assert name_of(facula.log1p(x).dtype) == floating


VALUES = [0.0, 1.0, -1.0, 2.5, -2.5, 100.0, 127.0]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(NUMPY, NUMPY)))
def test_conversion_as_numpy(a, b):
    """to() between all dtypes that NumPy has, for values that both can say something about."""
    if b == "uint8" or a == "uint8":
        values = [v for v in VALUES if v >= 0]
    else:
        values = VALUES
    source = np.array(values).astype(a)
    with np.errstate(all="ignore"):
        wanted = source.real.astype(b) if category(b) < 3 else source.astype(b)
    if b == "bool":
        wanted = source != 0
    got = facula.from_numpy(source.copy()).to(dtype(b))
    assert name_of(got.dtype) == b
    np.testing.assert_array_equal(got.numpy(), wanted)


def test_bfloat16_rounds_to_even():
    """1 + 2^-8 lies between two bfloat16 numbers and rounds to the even one, as its neighbour."""
    x = facula.tensor([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 3.4e38, float("inf")])
    got = x.to(facula.bfloat16).float().tolist()
    assert got[:3] == [1.0, 1 + 2**-6, 1 + 2**-7]
    assert got[3:] == [float("inf")] * 2 or got[3] > 3.3e38


@pytest.mark.parametrize("name", FLOATS)
def test_nan_and_infinity_survive(name):
    x = facula.tensor([float("nan"), float("inf"), -float("inf")], dtype=dtype(name))
    back = x.to(facula.float64).tolist()
    assert back[0] != back[0]
    assert back[1:] == [float("inf"), -float("inf")]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(ALL, ALL)))
def test_can_cast(a, b):
    """Values may go to a dtype of the same or a higher category, and from bool to all."""
    wanted = category(b) >= category(a)
    assert facula.can_cast(dtype(a), dtype(b)) == wanted


@pytest.mark.parametrize("name", ALL)
def test_facts(name):
    """What a dtype says of itself."""
    d = dtype(name)
    sizes = {
        "bool": 1,
        "uint8": 1,
        "int8": 1,
        "int16": 2,
        "int32": 4,
        "int64": 8,
        "float16": 2,
        "bfloat16": 2,
        "float32": 4,
        "float64": 8,
        "complex64": 8,
        "complex128": 16,
    }
    assert d.itemsize == sizes[name] == facula.empty(1, dtype=d).element_size()
    assert d.is_floating_point == (category(name) == 2)
    assert d.is_complex == (category(name) == 3)
    assert d.is_signed == (name not in ("bool", "uint8"))
    assert repr(d) == f"facula.{name}"


@pytest.mark.parametrize("name", FLOATS)
def test_finfo(name):
    info = facula.finfo(dtype(name))
    one = facula.ones((), dtype=dtype(name))
    assert (one + info.eps).item() > 1
    assert (one + info.eps / 4).item() == 1
    assert facula.tensor(info.max, dtype=dtype(name)).item() == info.max
    if name != "bfloat16":
        expected = np.finfo(name)
        assert (info.max, info.min, info.eps, info.tiny, info.bits) == (
            float(expected.max),
            float(expected.min),
            float(expected.eps),
            float(expected.tiny),
            expected.bits,
        )


@pytest.mark.parametrize("name", INTEGERS)
def test_iinfo(name):
    info, expected = facula.iinfo(dtype(name)), np.iinfo(name)
    assert (info.max, info.min, info.bits) == (expected.max, expected.min, expected.bits)
    x = facula.tensor([info.max, info.min], dtype=dtype(name))
    assert x.tolist() == [expected.max, expected.min]
    assert (x + 1).tolist()[0] == expected.min, "integers wrap around"


def _complex32(*shape):
    parts = facula.arange(2.0 * facula.Size(shape).numel()).view(2, *shape) / 4 - 1
    return facula.complex(*parts).to(facula.complex32)


OF_COMPLEX32 = {
    "add": lambda x, y: x + y,
    "add a row": lambda x, y: x + y[0],
    "of columns": lambda x, y: x.mT * y.mT,
    "sub": lambda x, y: facula.sub(x, y, alpha=2),
    "mul by a number": lambda x, y: x * 2.5,
    "mul by a complex number": lambda x, y: x * (1 - 2j),
    "div": lambda x, y: x / (y + 3),
    "neg": lambda x, y: -x,
    "conj": lambda x, y: x.conj().clone(),
    "conj_physical": lambda x, y: facula.conj_physical(x),
    "abs": lambda x, y: x.abs(),
    "angle": lambda x, y: x.angle(),
    "sgn": lambda x, y: x.sgn(),
    "eq": lambda x, y: x == y,
    "isfinite": lambda x, y: x.isfinite(),
    "addcmul": lambda x, y: facula.addcmul(x, x, y),
    "in place": lambda x, y: x.clone().mul_(y),
    "out": lambda x, y: facula.mul(x, y, out=facula.empty(0, dtype=x.dtype)),
    "sum": lambda x, y: x.sum(0),
    "mean": lambda x, y: x.mean(),
    "norm": lambda x, y: x.norm(dim=1),
    "std": lambda x, y: x.std(0),
    "var_mean": lambda x, y: facula.var_mean(x, 1)[1],
    "any": lambda x, y: x.any(1),
    "all": lambda x, y: x.all(),
    "count_nonzero": lambda x, y: x.count_nonzero(),
    "index_add": lambda x, y: x.index_add(0, facula.tensor([1, 1]), y),
    "index_put": lambda x, y: x.index_put((facula.tensor([1, 1]),), y, accumulate=True),
    "scatter_add": lambda x, y: x.scatter_add(0, facula.zeros(2, 3, dtype=facula.int64), y),
}


@pytest.mark.parametrize("name", OF_COMPLEX32)
def test_complex32_is_complex64_rounded(name):
    function, x, y = OF_COMPLEX32[name], _complex32(2, 3), _complex32(2, 3).flip(0)
    found, wide = function(x, y), function(x.to(facula.complex64), y.to(facula.complex64))
    half = {facula.complex64: facula.complex32, facula.float32: facula.float16}
    assert found.dtype == half.get(wide.dtype, wide.dtype)
    assert found.stride() == wide.stride()
    assert facula.equal(found, wide.to(found.dtype))


@pytest.mark.parametrize("name", ["int8", "uint8", "int32"])
def test_tensordot_sums_integers_in_their_dtype(name):
    ones, many = facula.ones(1, 3, dtype=dtype(name)), facula.ones(4, 2, dtype=dtype(name))
    found = facula.tensordot(ones, many, dims=([0], [0]))
    assert found.dtype == dtype(name)
    assert found.tolist() == [[4, 4]] * 3
