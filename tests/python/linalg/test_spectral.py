"""Eigenvalues and singular values: what they multiply to, their derivatives, what has none."""

import facula
import pytest
from facula import linalg
from facula.autograd import gradcheck, gradgradcheck

DTYPES = ["float32", "float64", "complex64", "complex128"]
SQUARE = [(1, 1), (3, 3), (2, 4, 4), (2, 1, 5, 5), (40, 40)]
ANY = [*SQUARE, (4, 3), (3, 4), (2, 3, 5), (2, 1, 5, 2), (30, 60)]
EMPTY = [(0, 0), (2, 0, 0), (0, 3, 3)]


def drawn(*shape, dtype="float64", seed=0):
    facula.manual_seed(seed)
    return facula.randn(*shape, dtype=getattr(facula, dtype))


def hermitian(*shape, dtype="float64"):
    matrix = drawn(*shape, dtype=dtype)
    return matrix + matrix.mH


def close(a, b):
    tolerance = 2e-4 if a.dtype in (facula.float32, facula.complex64) else 1e-10
    return facula.allclose(a, b.to(a.dtype), rtol=tolerance, atol=tolerance)


def diagonal(values, like):
    return facula.diag_embed(values).to(like.dtype)


# --- values


@pytest.mark.parametrize("UPLO", ["L", "U"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE + EMPTY, ids=str)
def test_eigh_reads_one_triangle(shape, dtype, UPLO):
    matrix = hermitian(*shape, dtype=dtype)
    half = matrix.tril() if UPLO == "L" else matrix.triu()
    L, Q = linalg.eigh(half, UPLO)
    assert L.dtype == (facula.float32 if dtype in ("float32", "complex64") else facula.float64)
    assert L.shape == shape[:-1] and (L.diff(dim=-1) >= 0).all()
    assert close(Q @ diagonal(L, Q) @ Q.mH, matrix)
    assert close(Q.mH @ Q, facula.eye(shape[-1], dtype=Q.dtype).expand(shape))
    assert close(linalg.eigvalsh(half, UPLO), L)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE + EMPTY, ids=str)
def test_eigenvectors_are_stretched(shape, dtype):
    matrix = drawn(*shape, dtype=dtype)
    L, V = linalg.eig(matrix)
    assert L.is_complex() and L.shape == shape[:-1] and V.shape == shape
    assert close(matrix.to(V.dtype) @ V, V * L.unsqueeze(-2))
    assert close(linalg.vector_norm(V, dim=-2), facula.ones(shape[:-1]))
    values = linalg.eigvals(matrix)
    order = [facula.argsort(x.real + 7 * x.imag, dim=-1) for x in (L, values)]
    assert close(L.gather(-1, order[0]), values.gather(-1, order[1]))


@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*ANY, *EMPTY, (0, 3), (3, 0), (2, 3, 0)], ids=str)
def test_singular_vectors_multiply_to_the_matrix(shape, dtype, full_matrices):
    matrix = drawn(*shape, dtype=dtype)
    *batch, m, n = shape
    k = min(m, n)
    U, S, Vh = linalg.svd(matrix, full_matrices=full_matrices)
    assert U.shape == (*batch, m, m if full_matrices else k)
    assert Vh.shape == (*batch, n if full_matrices else k, n)
    assert (S.diff(dim=-1) <= 0).all() and not S.is_complex()
    assert close(U[..., :k] @ diagonal(S, U) @ Vh[..., :k, :], matrix)
    for basis in (U, Vh.mH):
        one = facula.eye(basis.shape[-1], dtype=basis.dtype).expand(*batch, -1, -1)
        assert close(basis.mH @ basis, one)
    assert close(linalg.svdvals(matrix), S)
    left, values, right = facula.svd(matrix, some=not full_matrices)
    assert left.shape == U.shape and right.shape == Vh.mH.shape and close(values, S)


def test_svd_without_vectors_has_zeros_in_their_place():
    U, S, V = facula.svd(drawn(2, 3, 4), compute_uv=False)
    assert U.shape == (2, 3, 3) and V.shape == (2, 4, 4) and not U.any() and not V.any()
    assert close(S, linalg.svdvals(drawn(2, 3, 4)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3), (4, 1)], ids=str)
def test_polar_factors(shape, dtype):
    matrix = drawn(*shape, dtype=dtype)
    U, H = linalg.polar(matrix)
    assert close(U @ H, matrix) and close(H, H.mH)
    assert close(U.mH @ U, facula.eye(shape[-1], dtype=U.dtype).expand(H.shape))
    assert (linalg.eigvalsh(H) >= 0).all()


@pytest.mark.parametrize("hermitian_", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_pseudo_inverse_is_that_of_moore_and_penrose(dtype, hermitian_):
    matrix = drawn(2, 4, 4, dtype=dtype)
    matrix = matrix[..., :2] @ matrix[..., :2].mH if hermitian_ else matrix[..., :3]
    P = linalg.pinv(matrix, hermitian=hermitian_)
    for product in (matrix @ P, P @ matrix):
        assert close(product, product.mH)
    assert close(matrix @ P @ matrix, matrix) and close(P @ matrix @ P, P)


def test_tolerances_say_which_singular_values_count():
    matrix = facula.diag(facula.tensor([1.0, 1e-3, 1e-9]))
    batch = facula.stack([matrix, 2 * matrix, facula.zeros(3, 3)])
    rank = linalg.matrix_rank
    assert rank(batch).tolist() == [2, 2, 0]
    assert rank(batch, 1e-2).tolist() == [1, 1, 0]
    assert rank(batch, rtol=0.0).tolist() == [3, 3, 0]
    assert rank(batch, atol=1.5e-3).tolist() == [1, 2, 0]
    assert rank(batch, atol=facula.tensor([1e-2, 1e-4, 0.0])).tolist() == [1, 2, 0]
    assert rank(batch, hermitian=True).tolist() == [2, 2, 0]
    assert rank(batch, atol=facula.zeros(2, 3)).shape == (2, 3)
    counted = linalg.pinv(batch, rtol=facula.tensor([1e-2, 1e-4, 0.0])).diagonal(0, -2, -1)
    assert facula.allclose(counted[:, 1], facula.tensor([0.0, 500.0, 0.0]))


@pytest.mark.parametrize(
    ("p", "wanted"),
    [(None, 14.9330), (2, 14.9330), (-2, 0.0670), (1, 21.0), (-1, 6.0), ("fro", 15.0),
     ("nuc", 17.0), (float("inf"), 21.0)],
)  # fmt: skip
def test_condition_numbers(p, wanted):
    matrix = facula.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert facula.linalg.cond(matrix, p).item() == pytest.approx(wanted, abs=1e-3)
    singular = facula.stack([facula.ones(2, 2), facula.eye(2)])
    found = linalg.cond(singular.double(), p)
    assert found[0] < 1e-15 if p == -2 else found[0] > 1e15
    assert found[1].isfinite()


# --- derivatives, of what a sign or a phase does not change


def of_eigh(matrix):
    L, Q = linalg.eigh((matrix + matrix.mH) / 2)
    return L, Q @ diagonal(facula.sin(L), Q) @ Q.mH


def of_eigvalsh(matrix):
    return linalg.eigvalsh((matrix + matrix.mH) / 2)


def of_eig(matrix):
    # Magnitudes of vectors, and values, which may come in any order.
    L, V = linalg.eig(matrix)
    return (V.abs() * L.abs().unsqueeze(-2)).sum(-1), (L * L).sum(-1).real


def of_eigvals(matrix):
    return facula.exp(linalg.eigvals(matrix)).sum(-1).real


def of_svd(matrix):
    U, S, Vh = linalg.svd(matrix, full_matrices=False)
    return S, U @ diagonal(S.sin(), U) @ Vh, U.abs(), Vh.abs()


def of_whole_svd(matrix):
    k = min(matrix.shape[-2:])
    U, S, Vh = linalg.svd(matrix)
    return U[..., :k] @ diagonal(S.sin(), U) @ Vh[..., :k, :]


def of_pinv(matrix):
    return linalg.pinv(matrix)


def of_hermitian_pinv(matrix):
    return linalg.pinv(matrix @ matrix.mH, hermitian=True, rtol=1e-6)


def of_sqrt(matrix):
    return linalg.matrix_sqrth(matrix @ matrix.mH + facula.eye(matrix.shape[-2]))


def norm_of(order):
    return lambda matrix: linalg.matrix_norm(matrix, order)


def cond_of(p):
    return lambda matrix: linalg.cond(matrix, p)


CASES = {
    "eigh": (of_eigh, [(3, 3), (2, 2, 2)]),
    "eigvalsh": (of_eigvalsh, [(3, 3)]),
    "eig": (of_eig, [(3, 3), (2, 2, 2)]),
    "eigvals": (of_eigvals, [(3, 3)]),
    "svd": (of_svd, [(3, 3), (4, 2), (2, 2, 3)]),
    "whole_svd": (of_whole_svd, [(4, 2), (2, 2, 3)]),
    "svdvals": (linalg.svdvals, [(3, 3), (2, 4, 2)]),
    "polar": (linalg.polar, [(3, 3), (2, 4, 2)]),
    "pinv": (of_pinv, [(3, 3), (4, 2), (2, 2, 3)]),
    "hermitian_pinv": (of_hermitian_pinv, [(3, 3), (3, 2)]),
    "sqrth": (of_sqrt, [(3, 3)]),
    "nuclear": (norm_of("nuc"), [(3, 2)]),
    "spectral": (norm_of(2), [(3, 2)]),
    "smallest": (norm_of(-2), [(3, 2)]),
    "cond": (cond_of(None), [(3, 3)]),
    "cond_1": (cond_of(1), [(3, 3)]),
    "cond_fro": (cond_of("fro"), [(3, 3)]),
}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", CASES)
def test_derivatives(name, dtype):
    function, shapes = CASES[name]
    for shape in shapes:
        matrix = drawn(*shape, dtype=dtype).requires_grad_()
        assert gradcheck(function, matrix, check_forward_ad=True, check_batched_grad=True)
        assert gradgradcheck(function, matrix)


@pytest.mark.parametrize("function", [linalg.eigvalsh, linalg.svdvals], ids=["eigvalsh", "svdvals"])
def test_gradients_of_values_are_finite_where_values_repeat(function):
    matrix = facula.eye(3, requires_grad=True)
    function(matrix).sum().backward()
    assert close(matrix.grad, facula.eye(3))


def test_polar_and_root_have_second_derivatives_where_values_repeat():
    one = facula.eye(3, dtype=facula.float64, requires_grad=True)
    assert gradgradcheck(lambda a: linalg.matrix_sqrth((a + a.mT) / 2), one)
    assert gradgradcheck(linalg.polar, one)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: linalg.eigh(a + a.mH).eigenvectors,
        lambda a: linalg.eig(a).eigenvectors,
        lambda a: linalg.svd(a).U,
    ],
    ids=["eigh", "eig", "svd"],
)
def test_losses_that_depend_on_a_phase_have_no_derivative(function):
    matrix = drawn(3, 3, dtype="complex128").requires_grad_()
    with pytest.raises(RuntimeError, match="depends on the phase"):
        function(matrix).imag.sum().backward()


def test_matrices_without_vectors_may_change_before_backward():
    matrix = drawn(3, 3).requires_grad_()
    copy = matrix * 1
    values = linalg.svdvals(copy)
    copy.zero_()
    values.sum().backward()
    assert matrix.grad.any()


# --- what has no decomposition


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    "function", [linalg.eigh, linalg.eigvalsh, linalg.svd, linalg.svdvals, linalg.pinv]
)
def test_what_is_not_finite_raises(function, value):
    batch = facula.zeros(2, 3, 3)
    batch[1, 0, 0] = value
    with pytest.raises(linalg.LinAlgError, match="infinity or NaN of matrix 1"):
        function(batch)


@pytest.mark.parametrize("function", [linalg.eig, linalg.eigvals])
def test_eig_of_what_is_not_finite_raises(function):
    with pytest.raises(RuntimeError, match="infinity or NaN"):
        function(facula.tensor([[float("nan"), 0.0], [0.0, 1.0]]))


def test_the_other_triangle_may_hold_anything():
    matrix = facula.tensor([[1.0, float("nan")], [0.0, 2.0]])
    assert linalg.eigvalsh(matrix).tolist() == [1.0, 2.0]
    with pytest.raises(linalg.LinAlgError):
        linalg.eigvalsh(matrix, UPLO="U")


# --- vmap, meta, strides


@pytest.mark.parametrize(
    "function", [linalg.eigh, linalg.eig, linalg.svd, linalg.svdvals, linalg.polar, linalg.pinv]
)
def test_vmap_is_a_batch(function):
    batch = hermitian(4, 3, 3)
    found, wanted = facula.vmap(function)(batch), function(batch)
    for one, other in zip(
        *([x] if isinstance(x, facula.Tensor) else x for x in (found, wanted)), strict=True
    ):
        assert close(one, other)


def test_matrices_stand_column_by_column():
    batch = drawn(2, 4, 3)
    U, S, Vh = linalg.svd(batch, full_matrices=False)
    assert U.stride() == (12, 1, 4) and Vh.stride() == (9, 1, 3) and S.stride() == (3, 1)
    on_meta = linalg.svd(batch.to("meta"), full_matrices=False)
    assert [t.stride() for t in on_meta] == [t.stride() for t in (U, S, Vh)]
    assert linalg.eigh(batch[:, :3]).eigenvectors.stride() == (9, 1, 3)
