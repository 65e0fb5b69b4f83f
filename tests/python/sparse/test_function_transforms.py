"""Sparse tensors within functions that are differentiated or mapped."""

import facula
import pytest
from facula import func

DENSE = facula.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]], dtype=facula.float64)
LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc")


def _sparse(layout):
    return DENSE.to_sparse(layout=getattr(facula, layout))


def _matrix(*shape):
    return facula.arange(float(facula.Size(shape).numel()), dtype=DENSE.dtype).view(shape) + 1


DERIVATIVES = {
    "grad": lambda f: func.grad(lambda x: f(x).pow(2).sum()),
    "grad of grad": lambda f: func.grad(lambda x: func.grad(lambda y: f(y).pow(3).sum())(x).sum()),
    "vjp": lambda f: lambda x: func.vjp(f, x)[1](f(x))[0],
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (x * 2,))[1],
    "jacrev": func.jacrev,
    "jacfwd": func.jacfwd,
    "hessian": lambda f: func.hessian(lambda x: f(x).pow(2).sum()),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_a_sparse_matrix_that_the_function_captured(layout, name, shape):
    derivative, sparse = DERIVATIVES[name], _sparse(layout)
    found = derivative(lambda x: sparse @ x)(_matrix(*shape))
    assert facula.allclose(found, derivative(lambda x: DENSE @ x)(_matrix(*shape)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_sparse_matrix_as_the_argument(layout):
    def loss(s):
        return (s @ _matrix(3, 2)).pow(2).sum()

    assert facula.allclose(func.grad(loss)(_sparse(layout)).to_dense(), func.grad(loss)(DENSE))


def test_values_as_the_argument():
    indices = facula.tensor([[0, 1, 0], [0, 1, 2]])

    def tensor(values):
        return facula.sparse_coo_tensor(indices, values, (2, 3)).coalesce()

    # The rows of the matrix sum up to 3, 7 and 11.
    found = func.grad(lambda v: (tensor(v) @ _matrix(3, 2)).sum())(_matrix(3))
    assert found.tolist() == [3.0, 7.0, 11.0]
    found = func.grad(lambda v: facula.sparse.mm(tensor(v), _matrix(3, 2)).sum())(_matrix(3))
    assert found.tolist() == [3.0, 7.0, 11.0]
    assert func.grad(lambda v: facula.sparse.sum(tensor(v) * 2))(_matrix(3)).tolist() == [2.0] * 3


@pytest.mark.parametrize("layout", LAYOUTS)
def test_samples_share_a_sparse_matrix(layout):
    s = _sparse(layout)
    for samples in (_matrix(4, 3), _matrix(4, 3, 2)):
        expected = facula.stack([DENSE @ x for x in samples])
        assert facula.equal(func.vmap(lambda x: s @ x)(samples), expected)
    for samples in (_matrix(4, 2), _matrix(4, 5, 2)):
        expected = facula.stack([x @ DENSE for x in samples])
        assert facula.equal(func.vmap(lambda x: x @ s)(samples), expected)


def test_gradients_for_each_sample():
    s = _sparse("sparse_csr")
    found = func.vmap(func.grad(lambda x: (s @ x).pow(2).sum()))(_matrix(4, 3))
    assert facula.allclose(found, 2 * _matrix(4, 3) @ DENSE.mT @ DENSE)


def test_a_batch_of_sparse_matrices_raises():
    with pytest.raises(NotImplementedError, match="layout sparse_coo"):
        func.vmap(lambda s: s * 2)(facula.stack([DENSE, DENSE]).to_sparse())
