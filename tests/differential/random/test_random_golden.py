"""Random tensors, value for value those of PyTorch, and generators that end in the same state."""

import facula
import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

SIZES = [*range(21), 31, 32, 33, 100, 624, 1000, 100001]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
NUMBERS = FLOATS + INTEGERS
ALL = [*NUMBERS, "bool"]
ULPS = 4

# In-place fills: name, arguments, dtypes, tolerance in units in the last place.
FILLS = [
    ("uniform_", (), FLOATS + COMPLEX, 0),
    ("uniform_", (-0.3, 2.4), FLOATS, 0),
    ("normal_", (), FLOATS + COMPLEX, ULPS),
    ("normal_", (100.3, 1.7), FLOATS, ULPS),
    ("exponential_", (0.3,), FLOATS, ULPS),
    ("cauchy_", (2.0, 0.5), FLOATS, ULPS),
    ("log_normal_", (0.0, 0.25), FLOATS, ULPS),
    ("geometric_", (0.1,), NUMBERS, 0),
    ("bernoulli_", (0.3,), ALL, 0),
    ("random_", (), ALL, 0),
    ("random_", (2,), ALL, 0),
    ("random_", (-50, 50), [d for d in NUMBERS if d != "uint8"], 0),
    ("random_", (0, 2**28), ["int32", "int64", "float32", "float64"], 0),
    ("random_", (-(2**63), None), ["int64", "float32", "float64", "bfloat16"], 0),
]

# Layouts of a tensor of n elements, made with either library.
LAYOUTS = {
    "contiguous": lambda lib, n, dtype: lib.empty(n, dtype=dtype),
    "stepped": lambda lib, n, dtype: lib.empty(2 * n, dtype=dtype)[::2],
    "transposed": lambda lib, n, dtype: lib.empty(n, 3, dtype=dtype).t(),
    "permuted": lambda lib, n, dtype: lib.empty(2, n, 3, dtype=dtype).permute(1, 2, 0),
    "channels_last": lambda lib, n, dtype: lib.empty(2, 3, 1, n, dtype=dtype).contiguous(
        memory_format=lib.channels_last
    ),
}

# Functions that make a tensor: name and a function of (library, generator, dtype of the library).
# Those of NORMALS are compared with a tolerance.
NORMALS = {"randn", "normal_tensors"}
MAKERS = {
    "rand": (lambda lib, g, d: lib.rand(5, 7, generator=g, dtype=d), FLOATS + COMPLEX),
    "randn": (lambda lib, g, d: lib.randn(5, 7, generator=g, dtype=d), FLOATS + COMPLEX),
    "randint": (lambda lib, g, d: lib.randint(3, 90, (5, 7), generator=g, dtype=d), NUMBERS),
    "randperm": (lambda lib, g, d: lib.randperm(100, generator=g, dtype=d), NUMBERS),
    "normal_tensors": (
        lambda lib, g, d: lib.normal(
            lib.arange(20, dtype=d), lib.arange(1, 21, dtype=d), generator=g
        ),
        FLOATS,
    ),
    "bernoulli": (
        lambda lib, g, d: lib.bernoulli(lib.arange(50, dtype=d) / 50, generator=g),
        FLOATS,
    ),
    "poisson": (lambda lib, g, d: lib.poisson(lib.arange(40, dtype=d), generator=g), FLOATS),
    "binomial": (
        lambda lib, g, d: lib.binomial(
            lib.arange(50, dtype=d), lib.arange(50, dtype=d) / 50, generator=g
        ),
        ["float32", "float64"],
    ),
}


def generators(seed):
    """Generators of both libraries, at the same place."""
    mine, theirs = facula.Generator(), torch.Generator()
    mine.manual_seed(seed)
    theirs.manual_seed(seed)
    return mine, theirs


def as_numpy(tensor, lib):
    if tensor.dtype == lib.bfloat16:
        tensor = tensor.to(lib.float32)
    return tensor.contiguous().numpy()


def same_state(mine, theirs):
    return mine.get_state().tolist() == theirs.get_state().tolist()


def check_close(got, expected, dtype, ulps, scale=0.0):
    """Equal, or within `ulps` of the larger of |expected| and `scale`."""
    got, expected = as_numpy(got, facula), as_numpy(expected, torch)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    if ulps == 0:
        np.testing.assert_array_equal(got, expected)
        return
    size = np.maximum(np.abs(expected), scale)
    eps = torch.finfo(getattr(torch, dtype)).eps
    assert (np.abs(got - expected) <= ulps * eps * size + 1e-300).all()


def fill_cases():
    for name, args, dtypes, ulps in FILLS:
        for dtype in dtypes:
            yield pytest.param(name, args, dtype, ulps, id=f"{name}{args}-{dtype}")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "args", "dtype", "ulps"), list(fill_cases()))
def test_fill(name, args, dtype, ulps, layout):
    """One stream through all sizes: a draw too many or too few shows in what follows."""
    mine, theirs = generators(2024)
    sizes = [n for n in SIZES if layout == "contiguous" or n < 2000]
    scale = abs(args[0]) if name == "normal_" and args else 0.0
    for n in sizes:
        got = LAYOUTS[layout](facula, n, getattr(facula, dtype))
        expected = LAYOUTS[layout](torch, n, getattr(torch, dtype))
        getattr(got, name)(*args, generator=mine)
        getattr(expected, name)(*args, generator=theirs)
        check_close(got, expected, dtype, ulps, scale)
        assert same_state(mine, theirs), f"n={n}"


def maker_cases():
    for name, (make, dtypes) in MAKERS.items():
        for dtype in dtypes:
            ulps = ULPS if name in NORMALS else 0
            yield pytest.param(make, dtype, ulps, id=f"{name}-{dtype}")


@pytest.mark.parametrize(("make", "dtype", "ulps"), list(maker_cases()))
def test_maker(make, dtype, ulps):
    mine, theirs = generators(7)
    for _ in range(3):
        got = make(facula, mine, getattr(facula, dtype))
        expected = make(torch, theirs, getattr(torch, dtype))
        check_close(got, expected, dtype, ulps, scale=20.0)
        assert same_state(mine, theirs)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("of", FLOATS)
def test_bernoulli_into(dtype, of):
    """Whatever the probabilities are of, out= is of any real dtype."""
    mine, theirs = generators(7)
    made = []
    for lib, generator in ((facula, mine), (torch, theirs)):
        chances = lib.arange(50).to(getattr(lib, of)) / 50
        made.append(lib.empty(0, dtype=getattr(lib, dtype)))
        lib.bernoulli(chances, generator=generator, out=made[-1])
    check_close(*made, dtype, 0)
    assert same_state(mine, theirs)


def test_bernoulli_into_complex():
    for lib in (facula, torch):
        with pytest.raises(NotImplementedError):
            lib.bernoulli(lib.ones(2), out=lib.empty(2, dtype=lib.complex64))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("samples", [1, 2, 3, 64])
@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial(dtype, samples, replacement):
    mine, theirs = generators(11)
    weights = [[(i * j) % 17 for i in range(1, 131)] for j in range(1, 6)]
    for transposed in (False, True):
        got, expected = (lib.tensor(weights, dtype=getattr(lib, dtype)) for lib in (facula, torch))
        if transposed:
            got, expected = got.t().contiguous().t(), expected.t().contiguous().t()
        got = facula.multinomial(got, samples, replacement, generator=mine)
        expected = torch.multinomial(expected, samples, replacement, generator=theirs)
        assert got.tolist() == expected.tolist()
        assert same_state(mine, theirs)


def dropout_run(lib, n):
    """Dropout's results under the library's own generator, and where that ends."""
    lib.manual_seed(5)
    tensors = [
        lib.nn.functional.dropout(lib.ones(n), 0.3),
        *lib.native_dropout(lib.ones(n), 0.3, True),
        lib.get_rng_state(),
    ]
    return [t.tolist() for t in tensors]


@pytest.mark.parametrize("n", [5, 100, 10000])
def test_dropout_masks(n):
    assert dropout_run(facula, n) == dropout_run(torch, n)


def test_states_travel_both_ways():
    mine, theirs = generators(3)
    facula.empty(5).normal_(generator=mine)  # an odd count leaves a normal in the cache
    theirs.set_state(torch.tensor(mine.get_state().tolist(), dtype=torch.uint8))
    expected = torch.empty(700, 2)[:, 0].normal_(generator=theirs)
    got = facula.empty(700, 2)[:, 0].normal_(generator=mine)
    check_close(got, expected, "float32", ULPS)
    mine.set_state(facula.tensor(theirs.get_state().tolist(), dtype=facula.uint8))
    assert same_state(mine, theirs)


def test_seeds():
    assert facula.Generator().initial_seed() == torch.Generator().initial_seed()
    for seed in (0, 1, 2**63, 2**64 - 1, -1, -(2**63)):
        mine, theirs = generators(seed)
        assert mine.initial_seed() == theirs.initial_seed()
        assert same_state(mine, theirs)


@pytest.mark.parametrize(
    ("name", "args", "dtype"),
    [
        ("uniform_", (1.0, 0.0), "float32"),
        ("uniform_", (0.0, 7e4), "float16"),
        ("uniform_", (), "int32"),
        ("normal_", (0.0, -1.0), "float32"),
        ("normal_", (), "int64"),
        ("exponential_", (0.0,), "float32"),
        ("exponential_", (1.0,), "int32"),
        ("cauchy_", (0.0, -1.0), "float32"),
        ("log_normal_", (0.0, -1.0), "float32"),
        ("geometric_", (1.0,), "float32"),
        ("geometric_", (0.5,), "bool"),
        ("bernoulli_", (1.5,), "float32"),
        ("random_", (5, 3), "float32"),
        ("random_", (-1, 5), "uint8"),
        ("random_", (0, 3), "bool"),
        ("random_", (-(2**63), None), "int32"),
        ("random_", (-(2**63), None), "bool"),
        ("random_", (), "complex64"),
    ],
)
def test_errors(name, args, dtype):
    with pytest.raises(Exception) as expected:
        getattr(torch.empty(3, dtype=getattr(torch, dtype)), name)(*args)
    with pytest.raises(expected.type):
        getattr(facula.empty(3, dtype=getattr(facula, dtype)), name)(*args)
