"""Batches of small matrices, several of which share a vector, against the same one by one."""

import facula
import pytest

SIZES = [1, 2, 3, 5, 8, 16, 17, 32, 33]
COUNT = 70  # whole vectors of any instruction set, and some matrices over


@pytest.fixture(autouse=True)
def seed():
    facula.manual_seed(3)


def matrices(n, dtype, columns=None):
    return facula.randn(COUNT, n, n if columns is None else columns, dtype=dtype)


def positive(n, dtype):
    half = matrices(n, dtype)
    return half @ half.mT + facula.eye(n, dtype=dtype)


def regular(n, dtype):
    """Far from singular, with pivots beside the diagonal."""
    return (matrices(n, dtype) + 3 * n**0.5 * facula.eye(n, dtype=dtype)).flip(-2)


def one_by_one(function, *batches):
    results = [function(*parts) for parts in zip(*batches, strict=True)]
    if isinstance(results[0], tuple):
        return tuple(facula.stack(list(parts)) for parts in zip(*results, strict=True))
    return facula.stack(results)


def is_close(found, wanted):
    close = 1e-9 if found.dtype == facula.float64 else 2e-3
    scale = wanted.abs().amax((-2, -1), keepdim=True).clamp_min(1)
    return bool(((found - wanted).abs() <= close * scale).all())


FUNCTIONS = {
    "cholesky": (positive, facula.linalg.cholesky),
    "cholesky upper": (positive, lambda A: facula.linalg.cholesky(A, upper=True)),
    "inv": (regular, facula.linalg.inv),
    "geqrf": (regular, lambda A: facula.geqrf(A)[0]),
    "qr": (regular, lambda A: facula.linalg.qr(A)[0]),
    "qr complete": (
        lambda n, dtype: matrices(n, dtype, max(1, n // 2)),
        lambda A: facula.linalg.qr(A, mode="complete")[0],
    ),
    "qr wide": (lambda n, dtype: matrices(n, dtype, n + 2), lambda A: facula.linalg.qr(A)[1]),
}


@pytest.mark.parametrize("dtype", [facula.float32, facula.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("n", SIZES)
def test_factors_are_those_of_each_matrix(name, n, dtype):
    make, function = FUNCTIONS[name]
    A = make(n, dtype)
    assert is_close(function(A), one_by_one(function, A))


@pytest.mark.parametrize("dtype", [facula.float32, facula.float64])
@pytest.mark.parametrize("columns", [1, 4, 9])
@pytest.mark.parametrize("n", SIZES)
def test_solutions_are_those_of_each_system(n, columns, dtype):
    A, b = regular(n, dtype), matrices(n, dtype, columns)
    assert is_close(A @ facula.linalg.solve(A, b), b)
    lu, pivots = facula.linalg.lu_factor(A)
    assert is_close(A @ facula.linalg.lu_solve(lu, pivots, b), b)
    for upper in (False, True):
        for unit in (False, True):
            T = A.triu() if upper else A.tril()
            T = T / (2 * n) if unit else T + 3 * n * facula.eye(n, dtype=dtype)
            options = {"upper": upper, "unitriangular": unit}
            found = facula.linalg.solve_triangular(T, b, **options)
            eye = facula.eye(n, dtype=dtype)
            whole = T * (1 - eye) + eye if unit else T
            assert is_close(whole @ found, b)


@pytest.mark.parametrize("dtype", [facula.float32, facula.float64, facula.complex64])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("n", [3, 16, 32])
def test_cholesky_reads_one_triangle_of_any_layout_and_writes_to_any(n, upper, dtype):
    half = matrices(n, dtype)
    A = half @ half.mH + n * facula.eye(n, dtype=dtype)
    unread = facula.full_like(A, 7)
    A = A.triu() + unread.tril(-1) if upper else A.tril() + unread.triu(1)
    wanted = one_by_one(lambda m: facula.linalg.cholesky(m, upper=upper), A)
    layouts = [A, A.mT.contiguous().mT, facula.cat([A, A], -1)[..., :n]]
    for given in layouts:
        assert is_close(facula.linalg.cholesky(given, upper=upper), wanted)
    for out in (facula.empty_like(A), facula.empty_like(A.mT.contiguous()).mT, A.clone()):
        facula.linalg.cholesky(A, upper=upper, out=out)
        assert is_close(out, wanted)
    facula.linalg.cholesky(A, upper=upper, out=A)
    assert is_close(A, wanted)


@pytest.mark.parametrize("n", [2, 8, 32])
def test_the_matrix_that_fails_is_named_among_many(n):
    A = positive(n, facula.float64)
    A[37, 1, 1] = -1.0
    info = facula.linalg.cholesky_ex(A).info
    assert info[37] == 2 and int((info != 0).sum()) == 1
    B = regular(n, facula.float64)
    B[41] = 0.0
    B[41, 0, 0] = 1.0
    info = facula.linalg.inv_ex(B).info
    assert info[41] == 2 and int((info != 0).sum()) == 1
    with pytest.raises(facula.linalg.LinAlgError, match="41"):
        facula.linalg.inv(B)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_numbers_whose_squares_leave_the_range_have_factors(size):
    A = matrices(6, facula.float32)
    Q, R = facula.linalg.qr(A * size)
    assert is_close(Q @ (R / size), A)
