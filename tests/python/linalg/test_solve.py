"""LU factors and solutions: they multiply to the matrix, and say what has no solution."""

import facula
import pytest
from facula.autograd import gradcheck

DTYPES = ["float32", "float64", "complex64", "complex128"]
TOLERANCE = {"float32": 2e-3, "complex64": 2e-3, "float64": 1e-9, "complex128": 1e-9}
# Around the orders at which kernels of small matrices change, and LAPACK takes over.
ORDERS = [1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 70]
LinAlgError = facula.linalg.LinAlgError


def random(*shape, dtype="float64"):
    facula.manual_seed(sum(shape))
    return facula.randn(*shape, dtype=getattr(facula, dtype))


def matrices(n, dtype, count=3):
    """Matrices that are far from singular ones, with rows that must change places."""
    diagonal = facula.eye(n, dtype=getattr(facula, dtype)).roll(1, 0) * (2 * n)
    return random(count, n, n, dtype=dtype) + diagonal


def close(a, b, dtype):
    return facula.allclose(a, b, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*((n, n) for n in ORDERS), (7, 3), (3, 7), (40, 20), (20, 40)])
def test_factors_multiply_to_the_matrix(shape, dtype):
    A = random(2, *shape, dtype=dtype)
    P, L, U = facula.linalg.lu(A)
    assert close(P @ L @ U, A, dtype)
    assert facula.equal(U, U.triu()) and facula.equal(L, L.tril())
    assert (L.abs() < 1.5).all()  # of complex numbers the sum of both parts chooses pivots


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrices_of_a_batch_are_factored_as_each_alone(dtype):
    for n in (2, 3, 8, 16, 17, 32):
        A = random(70, n, n, dtype=dtype)  # whole groups of matrices side by side, and a rest
        A[3], A[5, :, 0], A[66] = 0, 0, 0
        LU, pivots, info = facula.linalg.lu_factor_ex(A)
        assert info[3] == 1 and info[5] == 1 and info[66] == 1 and info.count_nonzero() == 3
        for i in range(70):
            alone = facula.linalg.lu_factor_ex(A[i])
            assert facula.equal(alone.LU, LU[i]) and facula.equal(alone.pivots, pivots[i])


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions_solve_the_equation(dtype, left, adjoint):
    for n in ORDERS:
        A = matrices(n, dtype)
        B = random(*((3, n, 5) if left else (3, 5, n)), dtype=dtype)
        X = facula.linalg.lu_solve(*facula.linalg.lu_factor(A), B, left=left, adjoint=adjoint)
        M = A.mH if adjoint else A
        assert close(M @ X if left else X @ M, B, dtype), n
        if not adjoint:
            assert close(facula.linalg.solve(A, B, left=left), X, dtype)


def test_many_right_hand_sides_and_views():
    A = matrices(50, "float64")
    B = random(4, 1, 50, 150)[..., ::2]
    X = facula.linalg.solve(A.mT, B)
    assert X.shape == (4, 3, 50, 75) and close(A.mT @ X, B, "float64")
    out = facula.empty(4, 3, 75, 50, dtype=facula.float64).mT[..., ::1]
    assert facula.equal(facula.linalg.solve(A.mT, B, out=out), X)


SINGULAR = facula.zeros(3, 3)
BATCH = facula.stack([facula.eye(3), SINGULAR])
LARGE = facula.zeros(40, 40)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: facula.linalg.solve(SINGULAR, facula.ones(3)), LinAlgError, "pivot 1 is zero"),
        (lambda: facula.linalg.solve(BATCH, facula.ones(3)), LinAlgError, "pivot 1 of matrix 1"),
        (lambda: facula.linalg.solve(LARGE, facula.ones(40)), LinAlgError, "pivot 1 is zero"),
        (
            lambda: facula.linalg.solve_ex(BATCH, facula.ones(3), check_errors=True),
            LinAlgError,
            "solve_ex(): pivot 1 of matrix 1",
        ),
        (lambda: facula.linalg.tensorsolve(SINGULAR, facula.ones(3)), LinAlgError, "pivot 1"),
        (lambda: facula.linalg.tensorinv(SINGULAR, ind=1), LinAlgError, "no inverse"),
        (lambda: facula.linalg.lu_factor(BATCH), RuntimeError, "pivot 1 of matrix 1 is zero"),
        (lambda: facula.lu(SINGULAR), RuntimeError, "pivot 1 is zero"),
        (lambda: SINGULAR.lu(), RuntimeError, "pivot 1 is zero"),
    ],
)
def test_singular_matrices(call, error, text):
    with pytest.raises(RuntimeError) as raised:
        call()
    assert raised.type is error and text in str(raised.value)


def test_codes_of_singular_matrices():
    assert facula.linalg.lu_factor_ex(BATCH).info.tolist() == [0, 1]
    assert facula.linalg.solve_ex(BATCH, facula.ones(3)).info.tolist() == [0, 1]
    assert facula.lu(BATCH, get_infos=True)[2].tolist() == [0, 1]
    half = facula.tensor([[1.0, 2.0], [2.0, 4.0]])
    assert facula.linalg.lu_factor_ex(half).info.item() == 2


@pytest.mark.parametrize("pivots", [[0, 1], [3, 1], [-5, 1], [2**31 - 1, 1]])
def test_pivots_that_are_no_rows(pivots):
    pivots = facula.tensor(pivots, dtype=facula.int32)
    for call in (
        lambda: facula.linalg.lu_solve(facula.eye(2), pivots, facula.eye(2)),
        lambda: facula.lu_unpack(facula.eye(2), pivots),
    ):
        with pytest.raises(RuntimeError, match="expected pivots from 1 to the 2 rows"):
            call()


def test_lu_fills_what_it_is_given():
    A = random(3, 3)
    out = (facula.empty(0, dtype=facula.float64), facula.empty(0, dtype=facula.int32))
    assert facula.lu(A, out=out) is out
    for got, wanted in zip(out, facula.linalg.lu_factor(A), strict=True):
        assert facula.equal(got, wanted)
    with pytest.raises(TypeError, match="2 tensors; got 1"):
        facula.lu(A, out=out[:1])


@pytest.mark.parametrize(
    "name", ["cholesky", "qr", "solve", "lstsq", "eig", "symeig", "matrix_rank"]
)
def test_names_of_long_ago_say_what_took_their_place(name):
    arguments = (facula.eye(2),) * (2 if name in ("solve", "lstsq") else 1)
    with pytest.raises(RuntimeError, match="removed in favour of linalg"):
        getattr(facula, name)(*arguments)
    if name != "matrix_rank":
        with pytest.raises(RuntimeError, match="removed in favour of linalg"):
            getattr(arguments[0], name)(*arguments[1:])


SHAPES = [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3,)), ((2, 3, 3), (2, 3))]
SHAPES += [((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 2)), ((4, 4), (4, 4))]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_vmap_of_solve(a, b):
    for dims in ((0, 0), (0, None), (None, 0)):
        A = random(*((5, *a) if dims[0] == 0 else a))
        B = random(*((5, *b) if dims[1] == 0 else b))
        got = facula.vmap(facula.linalg.solve, in_dims=dims)(A, B)
        for i in range(5):
            one = (A[i] if dims[0] == 0 else A, B[i] if dims[1] == 0 else B)
            assert facula.allclose(got[i], facula.linalg.solve(*one))


def test_vmap_of_known_factors():
    LU, pivots = facula.linalg.lu_factor(matrices(3, "float64", 5))
    B = random(2, 3, 2)
    got = facula.vmap(facula.linalg.lu_solve, in_dims=(0, 0, None))(LU, pivots, B)
    for i in range(5):
        assert facula.allclose(got[i], facula.linalg.lu_solve(LU[i], pivots[i], B))


# --- determinants


@pytest.mark.parametrize(
    "matrix",
    [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 3.0]], [[1.0, 2, 3], [4, 5, 6], [7, 8, 10]]],
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_gradient_of_det_is_the_cofactors(matrix, create_graph):
    A = facula.tensor(matrix, dtype=facula.float64, requires_grad=True)
    (grad,) = facula.autograd.grad(facula.linalg.det(A), A, create_graph=create_graph)
    n = A.shape[0]
    for i in range(n):
        for j in range(n):
            rest = [[matrix[r][c] for c in range(n) if c != j] for r in range(n) if r != i]
            cofactor = (-1) ** (i + j) * facula.linalg.det(
                facula.tensor(rest, dtype=facula.float64)
            )
            assert facula.allclose(grad[i, j], cofactor, atol=1e-9)


def test_determinants_of_singular_matrices():
    sign, logarithm = facula.linalg.slogdet(SINGULAR)
    assert sign.item() == 0 and logarithm.item() == -float("inf")
    assert facula.linalg.det(SINGULAR).item() == 0
    assert facula.logdet(-facula.eye(3)).isnan()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_of_logarithms(dtype):
    A = random(2, 3, 3, dtype=dtype)
    A = (A @ A.mH + facula.eye(3, dtype=A.dtype)).requires_grad_()
    assert gradcheck(facula.logdet, (A,), check_forward_ad=True, check_batched_grad=True)
    assert gradcheck(facula.linalg.slogdet, (A,), check_forward_ad=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [32, 33, 64, 97, 130])
def test_triangular_systems_of_medium_size(n, dtype):
    facula.manual_seed(n)
    A = facula.randn(n, n, dtype=getattr(facula, dtype)) / n + facula.eye(n) * 2
    hole = facula.full((n, n), float("nan"), dtype=A.dtype)
    places = facula.ones(n, n).bool()
    for upper in (False, True):
        for unit in (False, True):
            named = A.triu() if upper else A.tril()
            unread = places.tril(0 if unit else -1) if upper else places.triu(0 if unit else 1)
            given = facula.where(unread, hole, named)
            whole = named - named.diag().diag() + facula.eye(n) if unit else named
            for k in (0, 1, 3, 4, 40):
                B = facula.randn(n, k, dtype=A.dtype)
                found = facula.linalg.solve_triangular(given, B, upper=upper, unitriangular=unit)
                assert facula.allclose(whole @ found, B, atol=1e-5)
                turned = facula.linalg.solve_triangular(
                    given, B.mT, upper=upper, left=False, unitriangular=unit
                )
                assert facula.allclose(turned @ whole, B.mT, atol=1e-5)
                other = facula.linalg.solve_triangular(
                    given.mT.contiguous().mT, B[:, ::2], upper=upper, unitriangular=unit
                )
                assert facula.allclose(other, found[:, ::2], atol=1e-5)


def test_triangular_systems_of_a_batch_that_is_broadcast():
    facula.manual_seed(0)
    A = facula.randn(3, 1, 40, 40).double().tril() / 40 + facula.eye(40)
    B = facula.randn(2, 40, 3).double()
    found = facula.linalg.solve_triangular(A, B, upper=False)
    assert found.shape == (3, 2, 40, 3) and facula.allclose(A @ found, B.expand(3, 2, 40, 3))
    empty = facula.linalg.solve_triangular(A[:0], B, upper=False)
    assert empty.shape == (0, 2, 40, 3)


def test_triangular_systems_into_memory_that_is_given():
    facula.manual_seed(0)
    A = facula.randn(50, 50).double().triu() / 50 + facula.eye(50)
    B = facula.randn(50, 50).double()
    expected = facula.linalg.solve_triangular(A, B, upper=True)
    for out in (B.clone(), A.clone(), facula.empty(50, 100).double()[:, ::2]):
        same = out if out.is_contiguous() and facula.equal(out, A) else A
        facula.linalg.solve_triangular(same, B, upper=True, out=out)
        assert facula.equal(out, expected)


def test_triangular_systems_have_the_same_bits_at_any_number_of_threads():
    facula.manual_seed(0)
    A, B = facula.randn(300, 300) / 300 + facula.eye(300), facula.randn(300, 600)
    threads = facula.get_num_threads()
    found = []
    for n in (1, 2, 5):
        facula.set_num_threads(n)
        found.append(facula.linalg.solve_triangular(A, B, upper=True))
    facula.set_num_threads(threads)
    assert facula.equal(found[0], found[1]) and facula.equal(found[0], found[2])
