"""Products of groups of matrices of several sizes."""

from __future__ import annotations

import facula

_DTYPES = (facula.float32, facula.bfloat16, facula.float16)


def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """The product of each group of `mat_a` with its group of `mat_b`.

    A matrix with 3 dimensions has its groups in the first; one with 2 is cut by `offs`: in its
    rows or columns beside a 3-D one, in the dimension of the sum beside a 2-D one.

    Args:
        mat_a: (M, K) or (G, M, K); float32, bfloat16 or float16.
        mat_b: (K, N) or (G, K, N); of the same dtype.
        offs: int32, (G,): where the groups of the 2-D matrices end; None for two 3-D ones.
        bias: must be None, as in PyTorch.
        out_dtype: None or that of `mat_a`.

    Returns:
        Tensor (M, N), or (G, M, N) where both have as many dimensions. What lies behind the last
        end is zero.

    Raises:
        RuntimeError: dimensions, sizes or dtypes that do not fit.
        TypeError: a matrix that is no Tensor.

    Example:
        >>> a, b = facula.ones(3, 2), facula.ones(2, 2, 1)
        >>> ends = facula.tensor([1, 3], dtype=facula.int32)
        >>> facula.nn.functional.grouped_mm(a, b, offs=ends).tolist()
        [[2.0], [2.0], [2.0]]
    """
    _check_tensors(mat_a=mat_a, mat_b=mat_b)
    _check(mat_a, mat_b, offs, bias, out_dtype)
    if offs is None:
        return facula.bmm(mat_a, mat_b)
    ends = offs.tolist()
    groups = list(zip([0, *ends], ends, strict=False))
    if mat_a.dim() == mat_b.dim():
        return facula.stack([mat_a[:, low:high] @ mat_b[low:high] for low, high in groups])
    if mat_a.dim() == 2:
        parts = [mat_a[low:high] @ mat_b[i] for i, (low, high) in enumerate(groups)]
        rest = mat_a.new_zeros(mat_a.size(0) - ends[-1], mat_b.size(-1))
        return facula.cat([*parts, rest], dim=0)
    parts = [mat_a[i] @ mat_b[:, low:high] for i, (low, high) in enumerate(groups)]
    rest = mat_a.new_zeros(mat_a.size(1), mat_b.size(-1) - ends[-1])
    return facula.cat([*parts, rest], dim=1)


def _check(mat_a, mat_b, offs, bias, out_dtype):
    dims = mat_a.dim(), mat_b.dim()
    if not all(d in (2, 3) for d in dims):
        raise RuntimeError(f"grouped_mm(): matrices must have 2 or 3 dimensions; got {dims}")
    if mat_a.dtype not in _DTYPES or mat_a.dtype != mat_b.dtype:
        raise RuntimeError(
            "grouped_mm(): matrices must be of one dtype, float32, bfloat16 or float16; got "
            f"{mat_a.dtype} and {mat_b.dtype}"
        )
    if mat_a.size(-1) != mat_b.size(-2):
        raise RuntimeError(
            "grouped_mm(): columns of mat_a must be as many as rows of mat_b; got "
            f"{mat_a.size(-1)} and {mat_b.size(-2)}"
        )
    if (offs is None) != (dims == (3, 3)):
        raise RuntimeError(
            "grouped_mm(): offs must be given where a matrix has 2 dimensions, and only there"
        )
    if bias is not None:
        raise RuntimeError("grouped_mm(): bias is not supported; got one")
    if out_dtype not in (None, mat_a.dtype):
        raise RuntimeError(
            f"grouped_mm(): out_dtype must be that of mat_a, {mat_a.dtype}; got {out_dtype}"
        )
    if offs is not None:
        _check_ends(mat_a, mat_b, offs)


def _check_ends(mat_a, mat_b, offs):
    if offs.dtype != facula.int32 or offs.dim() != 1:
        raise RuntimeError(
            f"grouped_mm(): offs must be int32 with 1 dimension; got {offs.dtype} with {offs.dim()}"
        )
    batched = mat_a if mat_a.dim() == 3 else mat_b
    if batched.dim() == 3 and batched.size(0) != offs.numel():
        raise RuntimeError(
            f"grouped_mm(): offs must have one end for each of the {batched.size(0)} groups; got "
            f"{offs.numel()}"
        )
    size = mat_b.size(-1) if mat_a.dim() == 3 else mat_a.size(0 if mat_b.dim() == 3 else 1)
    ends = offs.tolist()
    if not ends or ends != sorted(ends) or ends[0] < 0 or ends[-1] > size:
        raise RuntimeError(
            f"grouped_mm(): offs must not decrease and lie in [0, {size}]; got {ends}"
        )


def _check_tensors(**matrices):
    for position, (name, matrix) in enumerate(matrices.items(), 1):
        if not isinstance(matrix, facula.Tensor):
            raise TypeError(
                f"grouped_mm(): argument '{name}' (position {position}) must be Tensor, not "
                f"{type(matrix).__name__}"
            )
