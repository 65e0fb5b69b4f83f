"""Sparse tensors from their parts, which may be tensors, arrays or nested lists."""

import facula
from facula.ops import aten
from facula.sparse._invariants import check_sparse_tensor_invariants

# Layouts, whether rows are compressed, and whether there are blocks.
_COMPRESSED = {
    "sparse_csr": (True, False),
    "sparse_csc": (False, False),
    "sparse_bsr": (True, True),
    "sparse_bsc": (False, True),
}


def _values(data, dtype, device):
    """A tensor of the data that keeps its history."""
    if isinstance(data, facula.Tensor):
        return data if dtype is None and device is None else data.to(device=device, dtype=dtype)
    return facula.tensor(data, dtype=dtype, device=device)


def _indices(data, device, dtype=None):
    wanted = dtype or facula.int64
    if isinstance(data, facula.Tensor):
        return data.detach().to(device=device, dtype=wanted)
    return facula.tensor(data, dtype=wanted, device=device)


def _is_size(x):
    return isinstance(x, (tuple, list)) and all(isinstance(n, int) for n in x)


def _checked(check_invariants):
    is_on = check_sparse_tensor_invariants.is_enabled()
    return check_sparse_tensor_invariants(is_on if check_invariants is None else check_invariants)


def _finished(made, requires_grad):
    return made.detach().requires_grad_() if requires_grad else made


def _empty(size, dtype, device, requires_grad):
    made = aten.sparse_coo_tensor.size(list(size), dtype=dtype, device=device)
    return made.requires_grad_() if requires_grad else made


def sparse_coo_tensor(
    indices=None,
    values=None,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
):
    """A sparse_coo tensor: values at indices. With a size alone it has no elements.

    Args:
        indices (array_like): (sparse dims, nnz) integers, a column for each element.
        values (array_like): (nnz, dense sizes...).
        size (Size): of the tensor; by default the least that holds all indices.
        dtype (dtype): by default that of the values.
        device (device): by default that of the values.
        pin_memory (bool): not supported; must be False.
        requires_grad (bool): whether autograd follows the tensor.
        check_invariants (bool): check indices now; None as
            `sparse.check_sparse_tensor_invariants` says. Operators check those that they read.
        is_coalesced (bool): says that each position is there once, in order.

    Returns:
        Tensor: of layout sparse_coo.

    Raises:
        RuntimeError: parts that do not fit each other or the size.

    Example:
        >>> import facula
        >>> facula.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
        tensor([[0., 0., 3.],
                [4., 0., 0.]])
    """
    if pin_memory:
        raise NotImplementedError("sparse_coo_tensor(): pinned memory is not supported")
    if values is None and size is None and _is_size(indices):
        indices, size = None, indices
    if indices is None and values is None:
        if size is None:
            raise TypeError("sparse_coo_tensor(): expected indices and values, or a size")
        return _empty(size, dtype, device, requires_grad)
    if indices is None or values is None:
        raise TypeError("sparse_coo_tensor(): expected both indices and values; got one of them")
    values = _values(values, dtype, device)
    indices = _indices(indices, values.device)
    with _checked(check_invariants):
        if size is None:
            made = aten.sparse_coo_tensor.indices(indices, values, is_coalesced=is_coalesced)
        else:
            made = aten.sparse_coo_tensor.indices_size(
                indices, values, list(size), is_coalesced=is_coalesced
            )
    return _finished(made, requires_grad)


def _least_size(compressed, plain, values, by_rows, has_blocks):
    batch = compressed.dim() - 1
    if batch < 0 or plain.dim() != compressed.dim() or values.dim() <= batch + 2 * has_blocks:
        raise RuntimeError(
            "values must have dimensionality > sum of batch and block dimensionalities "
            f"(={max(batch, 0)} + {2 * has_blocks}) but got {values.dim()}"
        )
    block = tuple(values.shape[batch + 1 : batch + 3]) if has_blocks else (1, 1)
    lines = max(compressed.shape[-1] - 1, 0)
    others = int(plain.max()) + 1 if plain.numel() else 0
    grid = (lines, others) if by_rows else (others, lines)
    dense = tuple(values.shape[batch + 1 + 2 * has_blocks :])
    return (*compressed.shape[:-1], grid[0] * block[0], grid[1] * block[1], *dense)


def _index_dtype(*given):
    """int32 where all tensors among them have it, else int64."""
    dtypes = {part.dtype for part in given if isinstance(part, facula.Tensor)}
    return facula.int32 if dtypes == {facula.int32} else facula.int64


def sparse_compressed_tensor(
    compressed_indices,
    plain_indices,
    values,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """A tensor of layout sparse_csr, sparse_csc, sparse_bsr or sparse_bsc from its parts.

    Args:
        compressed_indices (array_like): (batch..., rows + 1) or (batch..., columns + 1): where
            the elements or blocks of each row or column begin.
        plain_indices (array_like): (batch..., nnz): the other coordinate of each.
        values (array_like): (batch..., nnz, block sizes..., dense sizes...).
        size (Size): of the tensor; by default the least that holds all indices.
        dtype (dtype): by default that of the values.
        layout (layout): which of the four.
        device (device): by default that of the values.
        pin_memory (bool): not supported; must be False.
        requires_grad (bool): whether autograd follows the tensor.
        check_invariants (bool): check all parts now; None as
            `sparse.check_sparse_tensor_invariants` says. Operators check what they read.

    Returns:
        Tensor: of the layout.

    Raises:
        RuntimeError: parts that do not fit each other or the size.

    Example:
        >>> import facula
        >>> t = facula.sparse_compressed_tensor(
        ...     [0, 1, 2], [1, 0], [3.0, 4.0], (2, 2), layout=facula.sparse_csr
        ... )
        >>> t.to_dense()
        tensor([[0., 3.],
                [4., 0.]])
    """
    if pin_memory:
        raise NotImplementedError("sparse_compressed_tensor(): pinned memory is not supported")
    name = None if layout is None else str(layout).rpartition(".")[2]
    if name not in _COMPRESSED:
        got = {"sparse_coo": "Sparse", "strided": "Strided", None: "none"}.get(name, name)
        raise RuntimeError(
            f"sparse_compressed_tensor expected sparse compressed tensor layout but got {got}"
        )
    by_rows, has_blocks = _COMPRESSED[name]
    values = _values(values, dtype, device)
    index = _index_dtype(compressed_indices, plain_indices)
    compressed = _indices(compressed_indices, values.device, index)
    plain = _indices(plain_indices, values.device, index)
    if size is None:
        size = _least_size(compressed, plain, values, by_rows, has_blocks)
    with _checked(check_invariants):
        made = aten._sparse_compressed_tensor_unsafe(
            compressed, plain, values, list(size), layout=layout
        )
    return _finished(made, requires_grad)


def sparse_csr_tensor(
    crow_indices,
    col_indices,
    values,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """A tensor of layout sparse_csr from its parts.

    Args:
        crow_indices (array_like): (batch..., rows + 1): where the elements of each begin.
        col_indices (array_like): (batch..., nnz): the column of each.
        values (array_like): (batch..., nnz, dense sizes...).
        size (Size): of the tensor; by default the least that holds all indices.
        dtype (dtype): by default that of the values.
        device (device): by default that of the values.
        pin_memory (bool): not supported; must be False.
        requires_grad (bool): whether autograd follows the tensor.
        check_invariants (bool): check all parts now; None as
            `sparse.check_sparse_tensor_invariants` says. Operators check what they read.

    Returns:
        Tensor: of layout sparse_csr.

    Raises:
        RuntimeError: parts that do not fit each other or the size.

    Example:
        >>> import facula
        >>> facula.sparse_csr_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
        tensor([[0., 3.],
                [4., 0.]])
    """
    return sparse_compressed_tensor(
        crow_indices,
        col_indices,
        values,
        size,
        dtype=dtype,
        layout=facula.sparse_csr,
        device=device,
        pin_memory=pin_memory,
        requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


def sparse_csc_tensor(
    ccol_indices,
    row_indices,
    values,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """A tensor of layout sparse_csc from its parts.

    Args:
        ccol_indices (array_like): (batch..., columns + 1): where the elements of each begin.
        row_indices (array_like): (batch..., nnz): the row of each.
        values (array_like): (batch..., nnz, dense sizes...).
        size (Size): of the tensor; by default the least that holds all indices.
        dtype (dtype): by default that of the values.
        device (device): by default that of the values.
        pin_memory (bool): not supported; must be False.
        requires_grad (bool): whether autograd follows the tensor.
        check_invariants (bool): check all parts now; None as
            `sparse.check_sparse_tensor_invariants` says. Operators check what they read.

    Returns:
        Tensor: of layout sparse_csc.

    Raises:
        RuntimeError: parts that do not fit each other or the size.

    Example:
        >>> import facula
        >>> facula.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
        tensor([[0., 4.],
                [3., 0.]])
    """
    return sparse_compressed_tensor(
        ccol_indices,
        row_indices,
        values,
        size,
        dtype=dtype,
        layout=facula.sparse_csc,
        device=device,
        pin_memory=pin_memory,
        requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


def sparse_bsr_tensor(
    crow_indices,
    col_indices,
    values,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """A tensor of layout sparse_bsr from its parts.

    Args:
        crow_indices (array_like): (batch..., rows + 1): where the blocks of each begin.
        col_indices (array_like): (batch..., nnz): the column of each.
        values (array_like): (batch..., nnz, height, width, dense sizes...).
        size (Size): of the tensor; by default the least that holds all indices.
        dtype (dtype): by default that of the values.
        device (device): by default that of the values.
        pin_memory (bool): not supported; must be False.
        requires_grad (bool): whether autograd follows the tensor.
        check_invariants (bool): check all parts now; None as
            `sparse.check_sparse_tensor_invariants` says. Operators check what they read.

    Returns:
        Tensor: of layout sparse_bsr.

    Raises:
        RuntimeError: parts that do not fit each other or the size.

    Example:
        >>> import facula
        >>> facula.sparse_bsr_tensor([0, 1, 2], [1, 0], [[[3.0]], [[4.0]]]).to_dense()
        tensor([[0., 3.],
                [4., 0.]])
    """
    return sparse_compressed_tensor(
        crow_indices,
        col_indices,
        values,
        size,
        dtype=dtype,
        layout=facula.sparse_bsr,
        device=device,
        pin_memory=pin_memory,
        requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


def sparse_bsc_tensor(
    ccol_indices,
    row_indices,
    values,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """A tensor of layout sparse_bsc from its parts.

    Args:
        ccol_indices (array_like): (batch..., columns + 1): where the blocks of each begin.
        row_indices (array_like): (batch..., nnz): the row of each.
        values (array_like): (batch..., nnz, height, width, dense sizes...).
        size (Size): of the tensor; by default the least that holds all indices.
        dtype (dtype): by default that of the values.
        device (device): by default that of the values.
        pin_memory (bool): not supported; must be False.
        requires_grad (bool): whether autograd follows the tensor.
        check_invariants (bool): check all parts now; None as
            `sparse.check_sparse_tensor_invariants` says. Operators check what they read.

    Returns:
        Tensor: of layout sparse_bsc.

    Raises:
        RuntimeError: parts that do not fit each other or the size.

    Example:
        >>> import facula
        >>> facula.sparse_bsc_tensor([0, 1, 2], [1, 0], [[[3.0]], [[4.0]]]).to_dense()
        tensor([[0., 4.],
                [3., 0.]])
    """
    return sparse_compressed_tensor(
        ccol_indices,
        row_indices,
        values,
        size,
        dtype=dtype,
        layout=facula.sparse_bsc,
        device=device,
        pin_memory=pin_memory,
        requires_grad=requires_grad,
        check_invariants=check_invariants,
    )
