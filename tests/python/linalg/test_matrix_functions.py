"""Functions of matrices: what they are equal to, and their derivatives."""

import facula
import pytest
from facula.autograd import gradcheck, gradgradcheck

DTYPES = ["float64", "complex128"]


def drawn(*shape, dtype="float64", seed=0):
    facula.manual_seed(seed)
    return facula.randn(*shape, dtype=getattr(facula, dtype))


def by_series(matrix):
    """The exponential by its Taylor series, of a matrix halved until that converges at once."""
    halvings = 12
    scaled = matrix / 2**halvings
    total = term = facula.eye(matrix.shape[-1], dtype=matrix.dtype)
    for k in range(1, 12):
        term = term @ scaled / k
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return total


# A norm in the range of each polynomial, and some that are halved first.
@pytest.mark.parametrize("norm", [1e-17, 1e-9, 1e-4, 1e-2, 0.2, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 5, 33])
def test_exponential_is_its_series(n, dtype, norm):
    matrix = drawn(n, n, dtype=dtype)
    matrix = matrix * (norm / matrix.abs().sum(0).max())
    found, wanted = facula.linalg.matrix_exp(matrix), by_series(matrix)
    assert (found - wanted).abs().max() <= 1e-11 * wanted.abs().max()


def test_exponential_of_float32_is_that_of_float64():
    for size in (1e-4, 1e-2, 0.3, 1.0, 8.0):
        matrix = drawn(4, 4) * size
        wanted = facula.linalg.matrix_exp(matrix)
        found = facula.linalg.matrix_exp(matrix.float()).double()
        assert (found - wanted).abs().max() <= 2e-5 * wanted.abs().max()


def test_exponentials_of_a_batch_are_those_of_its_matrices():
    batch = drawn(7, 3, 3) * facula.tensor([1e-9, 1e-5, 1e-3, 0.1, 1, 5, 50]).view(7, 1, 1)
    found = facula.matrix_exp(batch)
    for i in range(7):
        assert facula.equal(found[i], facula.matrix_exp(batch[i]))


def test_exponential_of_what_is_not_finite_is_nan_in_its_matrix_alone():
    batch = facula.zeros(3, 2, 2)
    batch[0, 0, 1] = float("inf")
    batch[1, 1, 1] = float("nan")
    found = facula.linalg.matrix_exp(batch)
    assert found[:2].isnan().all()
    assert facula.equal(found[2], facula.eye(2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_derivatives_of_the_exponential(dtype):
    matrix = drawn(2, 3, 3, dtype=dtype).requires_grad_()
    function = facula.linalg.matrix_exp
    assert gradcheck(function, matrix, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, matrix)


@pytest.mark.parametrize("dtype", [facula.float16, facula.bfloat16])
def test_exponential_of_half_types_is_computed_in_float(dtype):
    matrix = drawn(3, 3).to(dtype)
    found = facula.linalg.matrix_exp(matrix)
    assert found.dtype == dtype
    assert facula.equal(found, facula.linalg.matrix_exp(matrix.float()).to(dtype))
