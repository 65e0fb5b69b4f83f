"""Samples of src/ops/matmul/einsum.cpp."""

import numpy as np
from samples.common import Error, Op, Sample, T


def _bilinear(a, b, weight, bias=None):
    y = np.einsum("...i,oij,...j->...o", a, weight, b)
    return y if bias is None else y + bias


A, B = T(2, 3), T(3, 4)

OPS = [
    Op(
        "einsum",
        [
            Sample("ij,jk->ik", A, B),
            Sample("ij,jk", A, B),
            Sample("ij->ji", A),
            Sample("ij->", A),
            Sample("ij->j", T(2, 3, layout="transposed")),
            Sample("ii->i", T(3, 3)),
            Sample("ii", T(3, 3)),
            Sample("iij->ij", T(3, 3, 2)),
            Sample("jii->ij", T(2, 3, 3)),
            Sample("i,j->ij", T(3), T(4)),
            Sample("i,i", T(3), T(3)),
            Sample(",i", T(), T(3)),
            Sample("bij,bjk->bik", T(2, 3, 4), T(2, 4, 2)),
            Sample("...ij,...jk->...ik", T(2, 1, 3, 4), T(5, 4, 2)),
            Sample("i...->...", T(3, 2, 4)),
            Sample("...i->i...", T(3, 2, 4)),
            Sample("bn,anm,bm->ba", T(2, 5), T(3, 5, 4), T(2, 4)),
            Sample("ab,bc,cd,de", T(2, 3), T(3, 2), T(2, 4), T(4, 2)),
            Sample("ij,kj->ik", T(2, 0), T(3, 0)),
            Sample("Ab,bA->bA", T(2, 3), T(3, 2)),
            Sample("abc,abd->dc", T(2, 3, 4), T(2, 3, 2)),
            Sample("ab,ab->ab", T(2, 3), T(2, 3)),
            Sample(" i j , j k -> k i ", A, B),
            Sample("bhqd,bhkd->bhqk", T(2, 2, 3, 4), T(2, 2, 5, 4)),
        ],
        reference=np.einsum,
        dtypes="full complex int64",
        errors=[
            Error(RuntimeError, "fewer operands", Sample("ij,jk", A)),
            Error(RuntimeError, "more operands", Sample("ij", A, B)),
            Error(RuntimeError, "operand 0 must have a dimension for", Sample("ijk", A)),
            Error(RuntimeError, "operand 0 must have at least 3", Sample("i...jk", A)),
            Error(RuntimeError, "subscripts are the letters a-z and A-Z", Sample("i1,jk", A, B)),
            Error(RuntimeError, "ellipsis", Sample("i..j", A)),
            Error(RuntimeError, "broadcast", Sample("ij,ij", A, B)),
            Error(RuntimeError, "repeated", Sample("ii", A)),
            Error(RuntimeError, "an output subscript must stand once", Sample("ij->ii", A)),
            Error(RuntimeError, "each output subscript must stand in an", Sample("ij->k", A)),
        ],
    ),
    Op(
        "einsum",
        [
            Sample("ij,jk->ik", T(2, 1), T(3, 4)),
            Sample("ij,ij->i", T(2, 1), T(2, 3)),
            Sample("ij,jk->ij", T(2, 3), T(1, 4)),
            Sample("...,...->", T(2, 3), T(3)),
        ],
        dtypes="float",
    ),
    Op(
        "nn.functional.bilinear",
        [
            Sample(T(5, 3), T(5, 4), T(2, 3, 4), T(2)),
            Sample(T(2, 5, 3), T(2, 5, 4), T(2, 3, 4)),
            Sample(T(3), T(4), T(2, 3, 4)),
            Sample(T(0, 3), T(0, 4), T(2, 3, 4), T(2)),
        ],
        reference=_bilinear,
        dtypes="full int64",
        errors=[
            Error(RuntimeError, "weight", Sample(T(5, 3), T(5, 4), T(2, 2, 4))),
            Error(RuntimeError, "batch", Sample(T(5, 3), T(6, 4), T(2, 3, 4))),
        ],
    ),
    Op(
        "_trilinear",
        [
            Sample(T(2, 3), T(2, 4), T(3, 4), [2], [1], [0], [1]),
        ],
        dtypes="full",
    ),
]
