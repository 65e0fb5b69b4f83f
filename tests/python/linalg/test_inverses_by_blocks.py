"""Inverses of more than 32 rows: halves of columns, panels, and rows that change places."""

import facula
import pytest

DTYPES = ["float32", "float64", "complex64", "complex128"]


def residual(a, x):
    """The largest element of a x - 1, in units of what the norms and the dtype allow."""
    a, x, n = a.to(facula.complex128), x.to(facula.complex128), a.shape[-1]
    error = (a @ x - facula.eye(n, dtype=a.dtype)).abs().amax((-2, -1))
    return (error / (a.abs().sum(-1).amax(-1) * x.abs().sum(-1).amax(-1))).max().item()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [33, 47, 64, 65, 100, 129, 300])
def test_inverses_are_those_of_the_matrix(n, dtype):
    facula.manual_seed(n)
    a = facula.randn(2, n, n, dtype=getattr(facula, dtype))
    a[1, 0, 0] = 0  # asks for another row at once
    epsilon = facula.finfo(a.dtype).eps
    assert residual(a, facula.linalg.inv(a)) < 4 * epsilon


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [33, 47, 100])
def test_permutations_are_exact(n, dtype):
    facula.manual_seed(n)
    a = facula.eye(n, dtype=getattr(facula, dtype))[facula.randperm(n)]
    scales = 2.0 ** facula.arange(n)  # each column is larger than those before
    assert facula.equal(facula.linalg.inv(a * scales), (a / scales).T)


@pytest.mark.parametrize("n", [40, 129])
def test_a_singular_matrix_is_named(n):
    a = facula.randn(n, n)
    a[:, 35] = 0
    with pytest.raises(facula.linalg.LinAlgError, match="singular"):
        facula.linalg.inv(a)
    assert facula.linalg.inv_ex(a).info.item() == 36


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_inverses_have_the_same_bits_for_any_number_of_threads(dtype):
    a = facula.randn(200, 200, dtype=getattr(facula, dtype))
    before, found = facula.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            facula.set_num_threads(threads)
            found.append(facula.linalg.inv(a))
    finally:
        facula.set_num_threads(before)
    assert facula.equal(found[0], found[1]) and facula.equal(found[0], found[2])
