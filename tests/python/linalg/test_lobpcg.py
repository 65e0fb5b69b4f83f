"""lobpcg: some eigenvalues of a symmetric matrix, against all of them."""

import facula
import pytest


@pytest.fixture(autouse=True)
def seed():
    facula.manual_seed(7)


def symmetric(*sizes, dtype=facula.float64):
    half = facula.randn(*sizes, sizes[-1], dtype=dtype)
    return half @ half.mT


def wanted(A, k, largest):
    values = facula.linalg.eigvalsh(A)
    return values.flip(-1)[..., :k] if largest else values[..., :k]


@pytest.mark.parametrize("dtype, close", [(facula.float32, 1e-4), (facula.float64, 1e-9)])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("sizes", [(30,), (2, 3, 12)])
def test_values_are_the_greatest_or_least_and_vectors_belong_to_them(dtype, close, largest, sizes):
    A = symmetric(*sizes, dtype=dtype)
    E, X = facula.lobpcg(A, k=3, largest=largest)
    size = A.abs().max()
    assert E.dtype == X.dtype == dtype
    assert (E - wanted(A, 3, largest)).abs().max() < close * size
    assert (A @ X - X * E[..., None, :]).abs().max() < 1e-2 * size
    facula.testing.assert_close(
        X.mT @ X, facula.eye(3, dtype=dtype).expand(*sizes[:-1], 3, 3), atol=1e-4, rtol=0
    )


def test_a_second_matrix_makes_the_problem_general():
    A, B = symmetric(15), symmetric(15) + facula.eye(15, dtype=facula.float64)
    E, X = facula.lobpcg(A, k=2, B=B)
    facula.testing.assert_close(X.mT @ B @ X, facula.eye(2, dtype=facula.float64))
    facula.testing.assert_close(A @ X, B @ X * E, atol=1e-3, rtol=1e-3)


def test_a_good_preconditioner_saves_steps():
    A = facula.diag(facula.linspace(1, 1e4, 60, dtype=facula.float64))
    X = facula.randn(60, 2, dtype=facula.float64)
    steps = []
    for iK in (None, A.inverse()):
        seen = []
        facula.lobpcg(A, X=X, iK=iK, largest=False, tracker=lambda s, seen=seen: seen.append(1))
        steps.append(len(seen))
    assert steps[1] < steps[0] / 2


def test_a_tracker_sees_each_step_and_can_end_the_iteration():
    seen = []

    def tracker(state):
        seen.append((state.ivars["istep"], tuple(state.E.shape), tuple(state.X.shape)))
        state.bvars["force_stop"] = state.ivars["istep"] == 2

    facula.lobpcg(symmetric(20), k=2, tol=0.0, tracker=tracker)
    assert seen == [(i, (2,), (20, 2)) for i in range(3)]


def test_the_gradient_is_that_of_the_symmetric_matrix():
    X = facula.randn(9, 2, dtype=facula.float64)

    def pairs(A):
        E, vectors = facula.lobpcg(A, X=X, tol=1e-13, niter=200)
        return E, vectors * vectors[0].sign().detach()

    assert facula.autograd.gradcheck(pairs, symmetric(9).requires_grad_(), atol=1e-5)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: facula.lobpcg(3), TypeError, "argument 'A'"),
        (lambda: facula.lobpcg(facula.ones(9, 8)), AssertionError, "square"),
        (lambda: facula.lobpcg(facula.eye(9), k=4), ValueError, "three rows for each vector"),
        (lambda: facula.lobpcg(facula.eye(9), X=facula.ones(8, 2)), AssertionError, "9 rows"),
        (lambda: facula.lobpcg(facula.eye(9), B=facula.eye(8)), AssertionError, "one shape"),
        (lambda: facula.lobpcg(facula.eye(9).long()), RuntimeError, "float32 or float64"),
    ],
)
def test_wrong_arguments_raise(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_gradient_beside_a_second_matrix_raises():
    A = facula.eye(9, requires_grad=True)
    with pytest.raises(ValueError, match="without B"):
        facula.lobpcg(A, B=facula.eye(9))
