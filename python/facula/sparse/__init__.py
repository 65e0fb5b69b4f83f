"""Operators of sparse tensors, and whether their parts are checked.

Layouts sparse_coo, sparse_csr, sparse_csc, sparse_bsr and sparse_bsc are made by
`facula.sparse_coo_tensor`, `facula.sparse_csr_tensor` and their kin, or by `Tensor.to_sparse`.
"""

import importlib

from facula import _C, _missing
from facula.sparse._functions import (
    addmm,
    as_sparse_gradcheck,
    log_softmax,
    mm,
    softmax,
    solve,
    spdiags,
    spsolve,
    sum,
)
from facula.sparse._invariants import check_sparse_tensor_invariants

__all__ = [
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "softmax",
    "solve",
    "spdiags",
    "spsolve",
    "sum",
    "to_sparse_semi_structured",
]

_SEMI_STRUCTURED = {
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "to_sparse_semi_structured",
}

_LEGACY = {
    f"{name}Tensor": dtype
    for name, dtype in (
        ("Float", "float32"),
        ("Double", "float64"),
        ("Half", "float16"),
        ("BFloat16", "bfloat16"),
        ("Byte", "uint8"),
        ("Char", "int8"),
        ("Short", "int16"),
        ("Int", "int32"),
        ("Long", "int64"),
    )
}


def __getattr__(name):
    if name in _LEGACY:
        from facula.sparse._legacy import constructor

        value = globals()[name] = constructor(name, _LEGACY[name])
        return value
    if name in _SEMI_STRUCTURED or name == "semi_structured":
        module = importlib.import_module("facula.sparse.semi_structured")
        return module if name == "semi_structured" else getattr(module, name)
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        value = globals()[name] = _C._function("sparse", name)
    except AttributeError:
        raise _missing.attribute(__name__, name) from None
    return value


def __dir__():
    return sorted({*globals(), *_LEGACY, *_SEMI_STRUCTURED, *_C._function_names("sparse")})
