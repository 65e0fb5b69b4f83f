"""Cholesky factors: they multiply to the matrix, have derivatives, and say what has no factor."""

import facula
import pytest
from facula.autograd import gradcheck, gradgradcheck

SHAPES = [(3, 3), (2, 3, 3), (2, 1, 5, 5), (130, 130), (1, 1), (0, 0), (0, 2, 2)]
DTYPES = ["float64", "complex128"]


def positive_definite(*shape, dtype="float64"):
    facula.manual_seed(sum(shape))
    a = facula.randn(*shape, dtype=getattr(facula, dtype))
    return a @ a.mH + facula.eye(shape[-1], dtype=a.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors_multiply_to_the_matrix(shape, dtype):
    matrix = positive_definite(*shape, dtype=dtype)
    lower, upper = (facula.linalg.cholesky(matrix, upper=u) for u in (False, True))
    assert facula.equal(lower, lower.tril())
    assert facula.allclose(lower @ lower.mH, matrix)
    assert facula.allclose(upper, lower.mH)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions_and_inverses_are_those_of_the_matrix(dtype, upper):
    matrix = positive_definite(2, 4, 4, dtype=dtype)
    b = facula.randn(4, 3, dtype=matrix.dtype)
    factor = facula.linalg.cholesky(matrix, upper=upper)
    assert facula.allclose(
        matrix @ facula.cholesky_solve(b, factor, upper=upper), b.expand(2, 4, 3)
    )
    inverse = facula.cholesky_inverse(factor, upper=upper)
    assert facula.allclose(inverse, facula.linalg.inv(matrix))


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_derivatives(dtype, upper):
    def factor(a):
        return facula.linalg.cholesky((a + a.mH) / 2, upper=upper)

    def solution(a, b):
        return facula.cholesky_solve(b, factor(a), upper=upper)

    def inverse(a):
        return facula.cholesky_inverse(factor(a), upper=upper)

    matrix = positive_definite(2, 3, 3, dtype=dtype).requires_grad_()
    b = facula.randn(3, 2, dtype=matrix.dtype).requires_grad_()
    for function, inputs in ((factor, (matrix,)), (solution, (matrix, b)), (inverse, (matrix,))):
        assert gradcheck(function, inputs, check_forward_ad=True, check_batched_grad=True)
        assert gradgradcheck(function, inputs)


@pytest.mark.parametrize(
    ("matrix", "text"),
    [
        ([[0.0, 0.0], [0.0, 0.0]], "minor of order 1 is not positive"),
        ([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]], "order 2 of matrix 1"),
        ([[float("nan"), 0.0], [0.0, 1.0]], "order 1"),
    ],
)
def test_matrices_without_a_factor(matrix, text):
    with pytest.raises(facula.linalg.LinAlgError, match=text):
        facula.linalg.cholesky(facula.tensor(matrix))
    assert facula.linalg.cholesky_ex(facula.tensor(matrix)).info.any()


@pytest.mark.parametrize(
    ("matrix", "error", "text"),
    [
        (facula.ones(2, 3), RuntimeError, "square"),
        (facula.ones(2), RuntimeError, "2 dimensions"),
        (facula.ones(2, 2, dtype=facula.int64), NotImplementedError, "int64"),
        (facula.ones(2, 2, dtype=facula.float16), NotImplementedError, "float16"),
    ],
)
def test_wrong_arguments(matrix, error, text):
    with pytest.raises(error, match=text):
        facula.linalg.cholesky(matrix)


def test_vmap_and_meta():
    matrix = positive_definite(4, 3, 3)
    assert facula.equal(facula.vmap(facula.linalg.cholesky)(matrix), facula.linalg.cholesky(matrix))
    factor = facula.linalg.cholesky(matrix.to("meta"))
    assert factor.shape == (4, 3, 3) and factor.stride() == (9, 1, 3)
