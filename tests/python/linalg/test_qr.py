"""QR factors, reflectors, least squares and LDL factors: what holds for them."""

import facula
import numpy as np
import pytest

SHAPES = [(3, 3), (5, 3), (3, 5), (2, 4, 3), (2, 3, 4), (60, 40), (1, 1), (4, 0), (0, 3)]
DTYPES = ["float64", "complex128"]


def random(*shape, dtype="float64"):
    facula.manual_seed(sum(shape))
    return facula.randn(*shape, dtype=getattr(facula, dtype))


def is_identity(t):
    return facula.allclose(t, facula.eye(t.shape[-1], dtype=t.dtype).expand_as(t))


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors_multiply_to_the_matrix(shape, dtype, mode):
    A = random(*shape, dtype=dtype)
    Q, R = facula.linalg.qr(A, mode)
    assert facula.allclose(Q @ R, A) and is_identity(Q.mH @ Q)
    assert facula.equal(R, R.triu())
    if mode == "reduced":
        alone = facula.linalg.qr(A, "r")
        assert alone.Q.shape == (0,) and facula.allclose(alone.R, R)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (2, 4, 3)], ids=str)
def test_reflectors_make_the_same_q(shape, dtype):
    A = random(*shape, dtype=dtype)
    a, tau = facula.geqrf(A)
    Q = facula.linalg.qr(A, "complete").Q
    assert facula.allclose(facula.linalg.householder_product(a, tau), Q[..., : shape[-1]])
    C = random(*shape[:-1], 2, dtype=dtype)
    assert facula.allclose(facula.ormqr(a, tau, C), Q @ C)
    assert facula.allclose(a.ormqr(tau, C, transpose=True), Q.mH @ C)
    assert facula.allclose(facula.ormqr(a, tau, C.mT, left=False), C.mT @ Q)


LARGER = [(33, 5), (64, 33), (100, 100), (130, 70), (70, 130), (200, 1), (33, 200), (3, 40, 40)]
COLUMNS = {
    "as drawn": lambda x: x,
    "tiny": lambda x: x * np.finfo(x.dtype).tiny,
    "huge": lambda x: x * (np.finfo(x.dtype).max / 1e4),
    "of all sizes": lambda x: x * np.logspace(-20, 9, x.shape[-1]).astype(x.dtype),
    "some zeros": lambda x: x * (np.arange(x.shape[-1]) % 3 != 1).astype(x.dtype),
    "all zeros": lambda x: x * 0,
    "triangular": np.triu,
}


def column_errors(found, expected):
    """How far columns are from those expected, in parts of their largest elements."""
    error = np.abs(found.astype("float64") - expected).max(-2)
    return (error / np.maximum(np.abs(expected).max(-2), np.finfo("float64").tiny)).max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", COLUMNS)
def test_reflectors_of_larger_matrices(columns, dtype):
    eps = np.finfo(dtype).eps
    for shape in LARGER:
        x = COLUMNS[columns](np.random.default_rng(1).standard_normal(shape).astype(dtype))
        a, tau = facula.geqrf(facula.from_numpy(x))
        Q, R = (t.double().numpy() for t in facula.linalg.qr(facula.from_numpy(x)))
        rest = np.abs(np.swapaxes(Q, -1, -2) @ Q - np.eye(Q.shape[-1])).max()
        assert rest < 16 * eps, shape
        assert column_errors(x, Q @ R) < 64 * eps, shape
        assert ((0 <= tau) & (tau <= 2)).all() and np.abs(a.tril(-1).numpy()).max() <= 1
        assert (R == a[..., : R.shape[-2], :].triu().double().numpy()).all(), shape


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reflectors_are_those_of_lapack(dtype):
    for m, n in ((40, 40), (100, 70), (50, 90)):
        x = np.random.default_rng(2).standard_normal((m, n)).astype(dtype)
        a, tau = facula.geqrf(facula.from_numpy(x))
        reflectors, factors = np.linalg.qr(x.astype("float64"), mode="raw")
        near = 1000 * np.finfo(dtype).eps
        np.testing.assert_allclose(a.numpy(), reflectors.T, rtol=near, atol=near)
        np.testing.assert_allclose(tau.numpy(), factors, rtol=near, atol=near)


def test_larger_matrices_with_nan():
    x = random(50, 40)
    x[7, 20] = float("nan")
    Q, R = facula.linalg.qr(x)
    assert Q[:, 20:].isnan().any() and R[:, 20:].isnan().any()


@pytest.mark.parametrize("m, n, k", [(50, 40, 0), (50, 40, 13), (150, 150, 70), (40, 0, 0)])
def test_products_of_some_reflectors(m, n, k):
    a, tau = facula.geqrf(random(m, max(k, 1)))
    wide = facula.cat([a[:, :k], random(m, n - k)], 1)
    Q = facula.linalg.householder_product(wide, tau[:k])
    expected = facula.ormqr(a, tau, facula.eye(m, n, dtype=a.dtype)) if k else facula.eye(m, n)
    assert facula.allclose(Q, expected.to(Q.dtype))


def test_larger_matrices_have_the_same_bits_for_any_number_of_threads():
    before, found = facula.get_num_threads(), []
    try:
        for count in (1, 2, 5):
            facula.set_num_threads(count)
            found.append(facula.linalg.qr(random(300, 260, dtype="float32")))
    finally:
        facula.set_num_threads(before)
    assert all(facula.equal(a, b) for pair in found for a, b in zip(pair, found[0], strict=True))


def test_gradients_that_are_not_determined():
    A = random(3, 2).requires_grad_()
    with pytest.raises(RuntimeError, match="needs Q"):
        facula.linalg.qr(A, "r").R.sum().backward()
    with pytest.raises(RuntimeError, match="more rows than columns"):
        facula.linalg.qr(A, "complete").Q.sum().backward()
    with pytest.raises(NotImplementedError, match="geqrf"):
        facula.geqrf(A).a.sum().backward()


def test_vmap():
    A, C = random(4, 5, 3), random(4, 5, 2)
    Q, R = facula.vmap(facula.linalg.qr)(A)
    for got, wanted in zip((Q, R), facula.linalg.qr(A), strict=True):
        assert facula.equal(got, wanted)
    a, tau = facula.vmap(facula.geqrf)(A)
    got = facula.vmap(facula.ormqr, in_dims=(0, 0, None))(a, tau, C[0])
    assert facula.allclose(got, facula.ormqr(a, tau, C[:1].expand(4, 5, 2)))


# --- least squares


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 6, 4)], ids=str)
def test_residuals_are_orthogonal_to_the_columns(shape, dtype, driver):
    A, B = random(*shape, dtype=dtype), random(*shape[:-1], 2, dtype=dtype)
    X, residuals, rank, values = facula.linalg.lstsq(A, B, driver=driver)
    rest = B - A @ X
    assert facula.allclose(A.mH @ rest, facula.zeros_like(A.mH @ rest))
    if driver != "gelsy" and shape[-2] > shape[-1]:
        assert facula.allclose(residuals, rest.abs().square().sum(-2))
    if driver != "gels":
        assert (rank == min(shape[-2:])).all()
    if driver in ("gelsd", "gelss"):
        assert facula.allclose(values.square().sum(-1), A.abs().square().sum((-2, -1)))


@pytest.mark.parametrize("driver", ["gelsy", "gelsd", "gelss"])
def test_of_many_solutions_the_shortest(driver):
    A = facula.tensor([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    X, residuals, rank, _ = facula.linalg.lstsq(A, facula.ones(3, 1), driver=driver)
    assert rank.item() == 1 and residuals.numel() == 0
    assert facula.allclose(X, facula.full((2, 1), 0.5))
    weak = facula.tensor([[1.0, 0.0], [0.0, 0.1], [0.0, 0.0]])
    for rcond, rank in ((0.5, 1), (0.01, 2)):
        assert facula.linalg.lstsq(weak, facula.ones(3), rcond, driver=driver).rank.item() == rank


def test_gels_wants_full_rank():
    A = facula.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(facula.linalg.LinAlgError, match="column 2 depends"):
        facula.linalg.lstsq(A, facula.ones(3, 1), driver="gels")
    with pytest.raises(facula.linalg.LinAlgError, match="column 2 of matrix 1 depends"):
        facula.linalg.lstsq(
            facula.stack([A + facula.eye(3, 2), A]), facula.ones(2, 3, 1), driver="gels"
        )


def test_vmap_of_least_squares():
    A, b = random(4, 5, 3), random(4, 5)
    got = facula.vmap(lambda a, b: facula.linalg.lstsq(a, b, driver="gelsd").solution)(A, b)
    assert facula.allclose(got, facula.linalg.lstsq(A, b).solution)
    assert facula.vmap(lambda a: facula.linalg.lstsq(a, b[0]).residuals)(A).shape == (4, 0)


# --- LDL


@pytest.mark.parametrize(
    ("dtype", "hermitian"), [("float64", False), ("complex128", False), ("complex128", True)]
)
@pytest.mark.parametrize("n", [1, 4, 40])
def test_ldl_solves(n, dtype, hermitian):
    A = random(2, n, n, dtype=dtype)
    A = A + (A.mH if hermitian else A.mT)  # with zeros on the diagonal, blocks of two rows
    A = A - facula.diag_embed(A.diagonal(dim1=-2, dim2=-1)) + (n == 1)
    LD, pivots = facula.linalg.ldl_factor(A, hermitian=hermitian)
    B = random(3, 1, n, 2, dtype=dtype)
    X = facula.linalg.ldl_solve(LD, pivots, B, hermitian=hermitian)
    assert X.shape == (3, 2, n, 2) and facula.allclose(A @ X, B.expand_as(X))
    assert facula.equal(LD, LD.tril())


@pytest.mark.parametrize("pivots", [[0, 1], [3, 1], [-2, 1], [1, -1], [-9, -9]])
def test_pivots_of_no_ldl(pivots):
    pivots = facula.tensor(pivots, dtype=facula.int32)
    with pytest.raises(RuntimeError, match="expected (negative )?pivots"):
        facula.linalg.ldl_solve(facula.eye(2), pivots, facula.eye(2))


def test_ldl_has_no_derivative():
    A = facula.eye(2, requires_grad=True)
    LD, pivots = facula.linalg.ldl_factor(A)
    for result in (LD, facula.linalg.ldl_solve(LD, pivots, facula.ones(2, 1))):
        with pytest.raises(RuntimeError, match="not implemented"):
            result.sum().backward(retain_graph=True)
