"""Matrices compressed to two of four elements are PyTorch's, bit for bit."""

import facula
import pytest
import torch
from facula.sparse import _semi_structured_conversions as ours
from torch.sparse import _semi_structured_conversions as theirs

DTYPES = ("float16", "bfloat16", "int8", "float32")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(32, 64), (64, 64), (128, 192)])
@pytest.mark.parametrize("density", [0.3, 0.9])
def test_kept_elements_and_metadata_are_pytorchs(shape, dtype, density):
    torch.manual_seed(0)
    x = torch.randint(-9, 9, shape) * (torch.rand(shape) < density)
    found = ours.sparse_semi_structured_from_dense_cutlass(
        facula.tensor(x.tolist(), dtype=getattr(facula, dtype))
    )
    expected = theirs.sparse_semi_structured_from_dense_cutlass(x.to(getattr(torch, dtype)))
    for a, b in zip(found, expected, strict=True):
        assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
        assert a.tolist() == b.tolist()
    again = ours.sparse_semi_structured_to_dense_cutlass(*found)
    assert again.tolist() == theirs.sparse_semi_structured_to_dense_cutlass(*expected).tolist()


def test_classes_have_pytorchs_names_and_limits():
    for name in ("SparseSemiStructuredTensorCUTLASS", "SparseSemiStructuredTensorCUSPARSELT"):
        a, b = getattr(facula.sparse, name), getattr(torch.sparse, name)
        assert a.BACKEND == b.BACKEND
        limits = {str(d).split(".")[1]: tuple(c) for d, c in b._DTYPE_SHAPE_CONSTRAINTS.items()}
        limits.pop("float8_e4m3fnuz", None)  # a dtype that facula has not
        known = {str(d).split(".")[1]: tuple(c) for d, c in a._DTYPE_SHAPE_CONSTRAINTS.items()}
        assert known == limits


@pytest.mark.parametrize("lib", [facula, torch], ids=["facula", "torch"])
def test_cpu_tensors_are_refused(lib):
    for shape in ((64, 64), (3,), (31, 64)):
        with pytest.raises(RuntimeError, match="CUDA"):
            lib.sparse.to_sparse_semi_structured(lib.ones(shape).half())
