"""Sparse tensors that become strided: values at their places among zeros."""

import facula
import pytest

DTYPES = ["float32", "float64", "bfloat16", "float16", "int64", "uint8", "bool", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inner", [(), (3,), (2, 5)], ids=str)
def test_values_stand_at_their_places(inner, dtype):
    places = facula.tensor([0, 1, 7, 4095, 4096, 99_998])
    values = facula.ones(6, *inner).mul(3).to(getattr(facula, dtype))
    t = facula.sparse_coo_tensor(places[None], values, (100_000, *inner), is_coalesced=True)
    dense = t.to_dense()
    assert dense.dtype == values.dtype and dense.shape == t.shape
    assert facula.equal(dense[places], values)
    assert (dense != 0).flatten(1).any(1).sum() == 6 if inner else (dense != 0).sum() == 6


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_zeros_are_positive_as_in_sums(dtype):
    values = facula.tensor([-0.0, 1.0], dtype=getattr(facula, dtype))
    if dtype == "complex64":
        values = facula.complex(facula.tensor([-0.0, 1.0]), facula.tensor([2.0, -0.0]))
    dense = facula.sparse_coo_tensor([[1, 3]], values, (5,), is_coalesced=True).to_dense()
    parts = facula.view_as_real(dense) if dense.is_complex() else dense
    assert not parts.signbit().any()


def test_numbers_that_stand_twice_are_summed():
    t = facula.sparse_coo_tensor([[1, 1, 3]], [1.0, 2.0, 4.0], (5,))
    assert t.to_dense().tolist() == [0, 3, 0, 4, 0]


@pytest.mark.parametrize("size", [(0,), (4, 0)], ids=str)
def test_nothing_spread_is_nothing(size):
    t = facula.sparse_coo_tensor(size=size)
    assert t.to_dense().shape == size


def test_indices_outside_are_refused():
    t = facula.sparse_coo_tensor([[1, 3]], [1.0, 2.0], (5,), is_coalesced=True)
    t._indices()[0, 1] = 50
    with pytest.raises((RuntimeError, IndexError)):
        t.to_dense()
