"""Text of random tensors, the same as PyTorch's."""

import random

import facula
import pytest
from facula._tensor_str import set_printoptions, tensor_repr

torch = pytest.importorskip("torch")

SHAPES = [
    (),
    (1,),
    (5,),
    (30,),
    (0,),
    (0, 3),
    (3, 4),
    (2, 3, 4),
    (2, 2, 2, 2),
    (2000,),
    (7, 200),
    (40, 40),
    (1001, 1),
    (8, 200, 2),
    (2, 2, 2, 2, 2, 40),
]
DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
]
SPECIAL = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e-310, 1.7e308]
OPTIONS = {
    "precision": [0, 1, 4, 6, 10],
    "threshold": [0, 10, 1000],
    "edgeitems": [0, 1, 2, 5],
    "linewidth": [10, 40, 120, 200],
    "sci_mode": [True, False],
}


@pytest.fixture(autouse=True)
def default_options():
    yield
    for setter in (set_printoptions, torch.set_printoptions):
        setter(profile="default")


def number(rng, kind):
    scale = {
        "unit": 1,
        "whole": 10 ** rng.choice([0, 2, 4, 9]),
        "wide": 10 ** rng.randint(-30, 30),
        "tiny": 1e-5,
        "half": 4,
    }[kind]
    value = rng.gauss(0, 1) * scale
    if kind in ("whole", "half"):
        value = round(value)
    return value / 2 if kind == "half" else value


def values_for(rng, count, dtype):
    kind = rng.choice(["unit", "whole", "wide", "tiny", "half"])
    values = [number(rng, kind) for _ in range(count)]
    for special in rng.sample(SPECIAL, rng.randint(0, 3)) if count else []:
        values[rng.randrange(count)] = special
    if dtype.startswith("complex"):
        return [complex(v, number(rng, kind)) for v in values]
    if "float" in dtype:
        return values
    finite = [0 if v != v or abs(v) > 1e18 else int(v) for v in values]
    low, high = (0, 100) if dtype.startswith("u") else (-100, 100)
    return [v if dtype == "int64" else min(max(v, low), high) for v in finite]


def make_pair(rng):
    """The same random tensor in both libraries."""
    dtype, shape = rng.choice(DTYPES), rng.choice(SHAPES)
    count = 1
    for extent in shape:
        count *= extent
    values, flip = values_for(rng, count, dtype), rng.random() < 0.3 and len(shape) > 1
    wants_grad = rng.random() < 0.2 and ("float" in dtype or "complex" in dtype)
    pair = []
    for lib in (torch, facula):
        wide = {"c": lib.complex128, "b": lib.int64}.get(dtype[0], lib.float64)
        wide = wide if "float" in dtype or "complex" in dtype else lib.int64
        if dtype == "bfloat16":
            wide = lib.float64
        t = lib.tensor(values, dtype=wide).to(getattr(lib, dtype)).reshape(shape)
        t = t.transpose(0, -1) if flip else t
        pair.append(t.requires_grad_() if wants_grad else t)
    return pair


@pytest.mark.parametrize("seed", range(60))
def test_random_tensors(seed):
    rng = random.Random(seed)
    options = {name: rng.choice(of) for name, of in OPTIONS.items() if rng.random() < 0.3}
    profile = rng.choice(["default", "default", "short", "full"])
    for setter in (set_printoptions, torch.set_printoptions):
        setter(profile=profile, **options)
    library = str(facula.float32).partition(".")[0]
    for _ in range(12):
        theirs, ours = make_pair(rng)
        assert tensor_repr(ours).replace(f"{library}.", "torch.") == repr(theirs)


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: lib.ones(3, requires_grad=True) * 2,
        lambda lib: lib.ones(3, requires_grad=True).sum(),
        lambda lib: lib.ones(2, 3, requires_grad=True).t(),
        lambda lib: lib.ones(2, 3, requires_grad=True)[0],
        lambda lib: lib.ones(20, requires_grad=True) * 2,
        lambda lib: lib.empty(2, 3, device="meta", dtype=lib.int8),
        lambda lib: lib.empty(2, 0, requires_grad=True),
        lambda lib: lib.ones(1, 2).expand(3, 2),
        lambda lib: lib.tensor([1 + 2j]).conj(),
    ],
)
def test_suffixes(make):
    assert tensor_repr(make(facula)) == repr(make(torch))


@pytest.mark.parametrize("default", ["float64", "float16", "bfloat16"])
def test_default_dtype(default):
    for lib in (torch, facula):
        lib.set_default_dtype(getattr(lib, default))
    try:
        library = str(facula.float32).partition(".")[0]
        for name in ("float32", "float64", "float16", "complex64", "complex128", "int64"):
            for shape in ((2,), (0,), (0, 3)):
                theirs = torch.zeros(shape, dtype=getattr(torch, name))
                ours = facula.zeros(shape, dtype=getattr(facula, name))
                text = tensor_repr(ours).replace(f"{library}.", "torch.")
                assert text == repr(theirs)
    finally:
        for lib in (torch, facula):
            lib.set_default_dtype(lib.float32)
