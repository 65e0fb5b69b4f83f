"""Semi-structured sparse tensors on the CPU: held, opened, and refused where a device is needed."""

import copy
import pickle
import warnings

import facula
import pytest
from facula.sparse import (
    SparseSemiStructuredTensor,
    SparseSemiStructuredTensorCUSPARSELT,
    SparseSemiStructuredTensorCUTLASS,
    to_sparse_semi_structured,
)
from facula.sparse import _semi_structured_conversions as conversions

pytestmark = pytest.mark.filterwarnings("ignore:semi-structured sparse tensors are a prototype")
DTYPES = (facula.float16, facula.bfloat16, facula.int8, facula.float32)


def halved(m, k, dtype, seed=0):
    """A matrix in which two of each four neighbours are zero; of float32 one of each two."""
    facula.manual_seed(seed)
    values = facula.randint(1, 9, (m, k)).to(dtype)
    each, group = (1, 2) if dtype is facula.float32 else (2, 4)
    order = facula.rand(m, k // group, group).argsort(-1)
    return values * (order < each).reshape(m, k)


def compressed(x):
    parts = conversions.sparse_semi_structured_from_dense_cutlass(x)
    return SparseSemiStructuredTensorCUTLASS(x.shape, *parts, None, None, None)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(32, 64), (64, 128), (96, 64)])
def test_matrices_come_back_from_their_kept_elements(dtype, shape):
    x = halved(*shape, dtype)
    kept, meta = conversions.sparse_semi_structured_from_dense_cutlass(x)
    assert kept.shape == (shape[0], shape[1] // 2) and kept.dtype is dtype
    assert facula.equal(conversions.sparse_semi_structured_to_dense_cutlass(kept, meta), x)
    assert facula.equal(compressed(x).to_dense(), x)


def test_of_more_elements_in_a_group_two_are_kept():
    x = facula.ones(32, 32).half()
    found = compressed(x).to_dense()
    assert found[0].tolist() == [1.0, 1.0, 0.0, 0.0] * 8


def test_operators_that_only_move_parts():
    x = halved(32, 64, facula.float16)
    s = compressed(x)
    assert repr(s) == f"SparseSemiStructuredTensorCUTLASS(shape={s.shape})"
    assert s.dtype is facula.float16 and s.device.type == "cpu" and s.shape == (32, 64)
    assert s.t().shape == (64, 32) and facula.equal(s.t().t().to_dense(), x)
    for same in (s.detach(), s.clone(), s.view(32, 64), facula.nn.Parameter(s), copy.deepcopy(s)):
        assert isinstance(same, SparseSemiStructuredTensorCUTLASS)
        assert facula.equal(same.to_dense(), x)
    assert facula.equal(pickle.loads(pickle.dumps(s)).to_dense(), x)
    assert s.values().shape == (32, 32) and s.indices().dtype is facula.int16
    names, context = s.__tensor_flatten__()
    again = type(s).__tensor_unflatten__({n: getattr(s, n) for n in names}, context, None, None)
    assert names == ["packed", "meta"] and facula.equal(again.to_dense(), x)


def test_parts_that_stand_in_one_tensor():
    both = facula.arange(32 * 36).half()
    s = SparseSemiStructuredTensorCUSPARSELT(facula.Size((32, 64)), both, *[None] * 4)
    assert s.values().shape == (32, 32) and s.indices().shape == (32, 4)
    assert facula.equal(s.values().reshape(-1), both[:1024])


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s @ facula.ones(64, 8).half(),
        lambda s: facula.nn.functional.linear(facula.ones(8, 64).half(), s),
        lambda s: s + 1,
        lambda s: s[0],
        lambda s: s.view(64, 32),
        lambda s: s.float(),
        lambda s: facula.zeros_like(s),
    ],
)
def test_operators_without_a_kernel_raise(use):
    with pytest.raises(NotImplementedError):
        use(compressed(halved(32, 64, facula.float16)))


def test_matrices_that_are_not_on_a_device_are_refused():
    for make in (
        to_sparse_semi_structured,
        SparseSemiStructuredTensorCUTLASS.from_dense,
        SparseSemiStructuredTensorCUSPARSELT.from_dense,
    ):
        with pytest.raises(RuntimeError, match="CUDA device; got one on cpu"):
            make(facula.ones(64, 64).half())
    with (
        pytest.warns(FutureWarning, match="transposed"),
        pytest.raises(RuntimeError, match="CUDA device"),
    ):
        to_sparse_semi_structured(facula.ones(64, 64), transposed=True)
    with pytest.raises(ValueError, match="packed"):
        SparseSemiStructuredTensor((2, 4), None, None, None, None, None)
    with pytest.raises(AssertionError):
        compressed(halved(32, 64, facula.float16)).t().to_dense()


@pytest.mark.parametrize(
    "shape, dtype",
    [((3,), facula.float16), ((31, 64), facula.float16), ((32, 16), facula.float16),
     ((32, 64), facula.float64), ((16, 16), facula.int8)],
)  # fmt: skip
def test_matrices_that_do_not_fit_are_refused(shape, dtype):
    with pytest.raises(RuntimeError, match="expected"):
        conversions.sparse_semi_structured_from_dense_cutlass(facula.ones(shape).to(dtype))
    kept = facula.ones(32, 32).half()
    for meta in (facula.ones(3), facula.ones(32, 5).short(), facula.ones(32, 4).int()):
        with pytest.raises(RuntimeError, match="expected"):
            conversions.sparse_semi_structured_to_dense_cutlass(kept, meta)


def test_the_prototype_is_warned_of_once():
    SparseSemiStructuredTensor._PROTOTYPE_WARNING_SHOWN = False
    x = halved(32, 64, facula.float16)
    with pytest.warns(UserWarning, match="prototype"):
        compressed(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compressed(x)
