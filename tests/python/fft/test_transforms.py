"""Transforms of all lengths and layouts against NumPy's, on any number of threads."""

import itertools
import os

import facula
import numpy as np
import pytest

SMALL = range(1, 70)
# Products of small factors, primes, and products with a large prime.
LARGE = (
    127,
    128,
    243,
    256,
    257,
    263,
    512,
    521,
    1000,
    1009,
    1024,
    1155,
    2018,
    4096,
    6000,
    10007,
    16384,
    49152,
)
EPSILON = {"complex64": 1.2e-7, "complex128": 2.3e-16, "float32": 1.2e-7, "float64": 2.3e-16}


@pytest.fixture(autouse=True)
def threads():
    before = facula.get_num_threads()
    yield
    facula.set_num_threads(before)


def numbers(shape, dtype, seed=0):
    """Normal numbers, complex ones where the dtype is."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def assert_near(found, expected, dtype, n):
    """Within the error of a fast transform: some units times the root of the logarithm."""
    size = np.abs(expected).max(initial=0) + 1e-30
    error = np.abs(found.resolve_conj().numpy() - expected).max(initial=0) / size
    assert found.shape == expected.shape
    assert error <= 6 * EPSILON[dtype] * np.sqrt(np.log2(n) + 1)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("lines", [1, 3, 37])
def test_complex_lines_of_every_length(dtype, lines):
    for n in (*SMALL, *LARGE):
        x = numbers((lines, n), dtype, n)
        t = facula.from_numpy(x)
        exact = x.astype(np.complex128)
        assert_near(facula.fft.fft(t), np.fft.fft(exact), dtype, n)
        assert_near(facula.fft.ifft(t), np.fft.ifft(exact), dtype, n)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lines", [1, 3, 37])
def test_real_lines_of_every_length(dtype, lines):
    for n in (*SMALL, *LARGE):
        x = numbers((lines, n), dtype, n)
        t, exact = facula.from_numpy(x), x.astype(np.float64)
        half = facula.fft.rfft(t)
        assert_near(half, np.fft.rfft(exact), dtype, n)
        assert_near(facula.fft.fft(t), np.fft.fft(exact), dtype, n)
        assert_near(facula.fft.irfft(half, n), x, dtype, n)


# Rows that stand side by side or become matrices, by their number and length; columns that fill a
# part of a vector.
MANY = [((70, n), 1) for n in (384, 512, 1000, 1155, 1280, 1536, 3000)]
MANY += [((n, count), 0) for n in (8, 64, 100) for count in (5, 15, 21)]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape, dim", MANY, ids=str)
def test_many_lines(shape, dim, dtype):
    x = numbers(shape, dtype)
    t, exact, n = facula.from_numpy(x), x.astype(np.complex128), shape[dim]
    assert_near(facula.fft.fft(t, dim=dim), np.fft.fft(exact, axis=dim), dtype, n)
    assert_near(facula.fft.ifft(t, dim=dim), np.fft.ifft(exact, axis=dim), dtype, n)
    real, of_real = "float32" if dtype == "complex64" else "float64", exact.real
    half = facula.fft.rfft(t.real, dim=dim)
    assert_near(half, np.fft.rfft(of_real, axis=dim), real, n)
    assert_near(facula.fft.irfft(half, n, dim=dim), of_real, real, n)


# Columns that go on in the next matrix within a vector, and batches that are done part by part.
@pytest.mark.parametrize(
    "shape", [(5, 64, 21), (5, 100, 37), (17, 128, 256), (130, 64, 48)], ids=str
)
def test_batches_of_matrices(shape):
    x = numbers(shape, "complex64")
    t, exact, size = facula.from_numpy(x), x.astype(np.complex128), shape[1] * shape[2]
    for norm in ("backward", "ortho"):
        assert_near(facula.fft.fft2(t, norm=norm), np.fft.fft2(exact, norm=norm), "complex64", size)
        assert_near(
            facula.fft.ifft2(t, norm=norm), np.fft.ifft2(exact, norm=norm), "complex64", size
        )
        half = facula.fft.rfft2(t.real, norm=norm)
        assert_near(half, np.fft.rfft2(exact.real, norm=norm), "float32", size)
        back = facula.fft.irfft2(half, s=shape[1:], norm=norm)
        assert_near(back, exact.real, "float32", size)


def test_rows_of_sixteen_with_gaps():
    x = numbers((5, 4, 16), "complex64")[:, :3]
    t, exact = facula.from_numpy(x), x.astype(np.complex128)
    for count in (1, 2, 3):
        found, expected = facula.fft.fft(t[:, :count]), np.fft.fft(exact[:, :count])
        assert_near(found, expected, "complex64", 16)
        assert_near(facula.fft.ifft(found), exact[:, :count], "complex64", 16)


LAYOUTS = {
    "rows": lambda t: t,
    "columns": lambda t: t.transpose(-1, -2).contiguous().transpose(-1, -2),
    "every second": lambda t: facula.stack([t, t], -1)[..., 0],
    "one row for all": lambda t: t[:1].expand(t.shape),
    "backward in memory": lambda t: t.movedim(0, -1).contiguous().movedim(-1, 0),
    "conjugate": lambda t: t.conj(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dim", [0, 1, 2, (0, 2), (2, 1, 0)])
def test_layouts(layout, dim):
    for shape in ((3, 20, 33), (17, 2, 144), (2, 160, 3)):
        t = LAYOUTS[layout](facula.from_numpy(numbers(shape, "complex128")))
        x = t.resolve_conj().contiguous().numpy()
        dims = dim if isinstance(dim, tuple) else (dim,)
        assert_near(facula.fft.fftn(t, dim=dims), np.fft.fftn(x, axes=dims), "complex128", x.size)
        real = t.real
        expected = np.fft.rfftn(real.contiguous().numpy(), axes=dims)
        assert_near(facula.fft.rfftn(real, dim=dims), expected, "float64", x.size)
        sizes = [shape[d] for d in dims]
        back = facula.fft.irfftn(facula.from_numpy(expected), s=sizes, dim=dims)
        assert_near(back, real.contiguous().numpy(), "float64", x.size)


@pytest.mark.parametrize(
    "shape",
    [
        (1, 49152),
        (5, 1000),
        (100, 64),
        (101, 256),
        (17, 128, 256),
        (3, 10007),
        (300, 300),
        (37, 1009),
        (2001, 16),
    ],
)
def test_same_bits_for_any_number_of_threads(shape):
    t = facula.from_numpy(numbers(shape, "complex64"))
    found = []
    for count in (1, 2, 5):
        facula.set_num_threads(count)
        results = (facula.fft.fft(t), facula.fft.fft(t, dim=0), facula.fft.rfft2(t.real))
        found.append([np.asarray(r.numpy()).tobytes() for r in results])
    assert found[0] == found[1] == found[2]


def test_out_that_is_the_input():
    for n in (6, 1024):
        t = facula.from_numpy(numbers((4, n), "complex64"))
        expected = facula.fft.fft(t)
        assert facula.fft.fft(t, out=t) is t
        assert (t == expected).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_transforms_too():
    t = facula.from_numpy(numbers((64, 1000), "complex64"))
    expected = facula.fft.fft(t)
    child = os.fork()
    if child == 0:
        same = bool((facula.fft.fft(t) == expected).all())
        longer = facula.fft.fft(t, 1024).shape == (64, 1024)
        os._exit(0 if same and longer else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_more_lengths_than_plans_are_kept():
    for n in [*range(100, 140), *range(100, 140)]:
        x = numbers((n,), "complex128", n)
        assert_near(facula.fft.fft(facula.from_numpy(x)), np.fft.fft(x), "complex128", n)


def test_imaginary_parts_that_a_real_result_has_no_place_for_are_dropped():
    for n in (6, 7):
        half = numbers((2, n // 2 + 1), "complex128")
        plain = half.copy()
        plain[:, 0] = plain[:, 0].real
        if n % 2 == 0:
            plain[:, -1] = plain[:, -1].real
        found = facula.fft.irfft(facula.from_numpy(half), n)
        assert (found == facula.fft.irfft(facula.from_numpy(plain), n)).all()


@pytest.mark.parametrize("dim", [(0,), (1,), (0, 1)])
def test_shifts_undo_each_other(dim):
    for shape in ((4, 5), (1, 7), (6, 6)):
        t = facula.arange(int(np.prod(shape))).reshape(shape)
        shifted = facula.fft.fftshift(t, dim)
        assert (shifted.numpy() == np.fft.fftshift(t.numpy(), dim)).all()
        assert (facula.fft.ifftshift(shifted, dim) == t).all()


def test_names_of_the_module():
    kinds = itertools.product(("", "i", "r", "ir", "h", "ih"), ("", "2", "n"))
    names = [f"{kind}fft{dims}" for kind, dims in kinds]
    names += ["fftfreq", "rfftfreq", "fftshift", "ifftshift"]
    assert not [n for n in names if not callable(getattr(facula.fft, n, None))]


# What PyTorch's primitives take for granted.
REFUSED = {
    "unique": (RuntimeError, lambda x: facula._fft_c2c(x, [0, 0], 0, True)),
    "out of range": (IndexError, lambda x: facula._fft_c2c(x, [2], 0, True)),
    "no dimensions": (IndexError, lambda x: facula._fft_c2c(x[0, 0], [0], 0, True)),
    "normalization": (RuntimeError, lambda x: facula._fft_c2c(x, [1], 3, True)),
    "must be of size 3": (RuntimeError, lambda x: facula._fft_c2r(x, [1], 0, 4)),
    "data points": (RuntimeError, lambda x: facula._fft_c2r(x, [1], 0, 0)),
}


@pytest.mark.parametrize("text", REFUSED)
def test_primitives_refuse_what_makes_no_sense(text):
    error, call = REFUSED[text]
    with pytest.raises(error, match=text):
        call(facula.ones(3, 4, dtype=facula.complex64))


def test_the_primitive_takes_lines_without_points():
    assert facula._fft_c2c(facula.zeros(3, 0, dtype=facula.complex64), [1], 0, True).shape == (3, 0)
