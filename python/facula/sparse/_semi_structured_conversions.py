"""Between strided matrices and 2:4 sparse ones as CUTLASS lays them out.

Of each four neighbours in a row two are kept (of each two of float32, one). The metadata has four
bits for each group, the places of the two, and stands in the order in which tensor cores read it:
NVIDIA, "CUTLASS", `reorder_meta` and the layout ColumnMajorInterleaved<2>.
"""

from __future__ import annotations

import facula

# The integers that metadata is packed into.
_META_DTYPES = {
    facula.float16: facula.int16,
    facula.bfloat16: facula.int16,
    facula.float32: facula.int16,
    facula.int8: facula.int32,
}


def _meta_dtype(matrix):
    if matrix.dtype not in _META_DTYPES:
        raise RuntimeError(
            "semi-structured sparsity: expected float16, bfloat16, float32 or int8; got "
            f"{matrix.dtype}"
        )
    return _META_DTYPES[matrix.dtype]


def _positions(rows, columns, dtype, device):
    """Where each element of the metadata (rows, columns) stands in memory."""
    group, width = (32, 4) if dtype is facula.int16 else (16, 2)
    i = facula.arange(rows, device=device)[:, None]
    j = facula.arange(columns, device=device)[None, :]
    row = i // group * group + i % 8 * width + i % group // 8
    # Squares of two by two change the elements beside their diagonal.
    swap = row % 2 != j % 2
    sign = 1 - 2 * (row % 2)
    row, column = row + swap * sign, j - swap * sign
    return (column // 2 * (2 * rows) + row * 2 + column % 2).reshape(-1)


def _two_places(kept):
    """The places of the two that stay of each four; `kept` (..., 4) says which are not zero."""
    a, b, _, d = kept.unbind(-1)
    first = facula.where(a, 0, facula.where(b, 1, 2))
    second = facula.where(a & b, 1, facula.where(d | ~(a | b), 3, 2))
    return first, second


def sparse_semi_structured_from_dense_cutlass(dense):
    """Packs a strided matrix, of which at most half of each group is not zero.

    Args:
        dense (Tensor): (m, k) of float16, bfloat16, float32 or int8; of more elements in a group
            the first two are kept.

    Returns:
        tuple: the kept elements (m, k / 2), and the metadata, int16 or int32.

    Raises:
        RuntimeError: for other dtypes, or sizes that groups do not divide.

    Example:
        >>> x = facula.tensor([0.0, 1.0, 0.0, 2.0]).half().repeat(32, 8)
        >>> sparse_semi_structured_from_dense_cutlass(x)[0].shape
        facula.Size([32, 16])
    """
    if dense.dim() != 2:
        raise RuntimeError(f"expected a matrix; got a tensor of {dense.dim()} dimensions")
    (m, k), meta_dtype = dense.shape, _meta_dtype(dense)
    rows, groups = (32, 4) if meta_dtype is facula.int16 else (16, 8)
    # Columns of the metadata stand in pairs.
    columns = 2 * groups * (2 if dense.dtype is facula.float32 else 4)
    if m % rows != 0 or k % columns != 0:
        raise RuntimeError(
            f"expected a matrix of a multiple of {rows} rows and of {columns} columns; "
            f"got {m} by {k}"
        )
    if dense.dtype is facula.float32:
        pairs = dense.reshape(m, k // 2, 2)
        has_first = pairs[..., 0] != 0
        first, second = facula.where(has_first, 0, 2), facula.where(has_first, 1, 3)
        kept = facula.where(has_first, pairs[..., 0], pairs[..., 1])
    else:
        fours = dense.reshape(m, k // 4, 4)
        first, second = _two_places(fours != 0)
        kept = fours.gather(-1, facula.stack([first, second], -1)).reshape(m, k // 2)
    bits = (first | second << 2).reshape(m, -1, groups)
    steps = facula.arange(groups, device=dense.device) * 4
    packed = (bits << steps).sum(-1).to(meta_dtype)
    meta = facula.empty_like(packed).reshape(-1)
    meta[_positions(m, packed.shape[1], meta_dtype, dense.device)] = packed.reshape(-1)
    return kept, meta.reshape(packed.shape)


def sparse_semi_structured_to_dense_cutlass(sparse, meta_reordered):
    """The strided matrix that kept elements and metadata stand for.

    Args:
        sparse (Tensor): (m, k / 2), as `sparse_semi_structured_from_dense_cutlass` gives it.
        meta_reordered (Tensor): the metadata that belongs to it.

    Returns:
        Tensor: (m, k)

    Raises:
        RuntimeError: where the two do not fit.

    Example:
        >>> x = facula.tensor([0.0, 1.0, 0.0, 2.0]).half().repeat(32, 8)
        >>> packed = sparse_semi_structured_from_dense_cutlass(x)
        >>> facula.equal(sparse_semi_structured_to_dense_cutlass(*packed), x)
        True
    """
    if sparse.dim() != 2 or meta_reordered.dim() != 2:
        raise RuntimeError(
            f"expected matrices of elements and of metadata; got {sparse.dim()} and "
            f"{meta_reordered.dim()} dimensions"
        )
    (m, half), meta_dtype = sparse.shape, _meta_dtype(sparse)
    groups = 4 if meta_dtype is facula.int16 else 8
    each = 1 if sparse.dtype is facula.float32 else 2  # kept of a group
    fits = meta_reordered.shape == (m, half // (each * groups)) and half % (2 * each * groups) == 0
    if meta_reordered.dtype is not meta_dtype or not fits:
        raise RuntimeError(
            f"expected metadata of {meta_dtype} for elements {tuple(sparse.shape)}; got "
            f"{tuple(meta_reordered.shape)} of {meta_reordered.dtype}"
        )
    places = _positions(m, meta_reordered.shape[1], meta_dtype, sparse.device)
    meta = meta_reordered.reshape(-1)[places].reshape(m, -1, 1).long()
    bits = meta >> facula.arange(groups, device=sparse.device) * 4
    first, second = (bits & 3).reshape(m, -1), (bits >> 2 & 3).reshape(m, -1)
    if each == 1:
        column = facula.stack([first // 2], -1)
        dense = sparse.new_zeros(m, half, 2)
    else:
        column = facula.stack([first, second], -1)
        dense = sparse.new_zeros(m, half // 2, 4)
    return dense.scatter(-1, column, sparse.reshape(*column.shape)).reshape(m, 2 * half)
