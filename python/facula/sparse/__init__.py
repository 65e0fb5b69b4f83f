"""Operators of sparse tensors, and whether their parts are checked.

Layouts sparse_coo, sparse_csr, sparse_csc, sparse_bsr and sparse_bsc are made by
`facula.sparse_coo_tensor`, `facula.sparse_csr_tensor` and their kin, or by `Tensor.to_sparse`.
"""

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
]

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
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        value = globals()[name] = _C._function("sparse", name)
    except AttributeError:
        raise _missing.attribute(__name__, name) from None
    return value


def __dir__():
    return sorted({*globals(), *_LEGACY, *_C._function_names("sparse")})
