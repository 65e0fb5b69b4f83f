"""Functions of facula.sparse: products, sums and softmax whose gradients are sparse."""

import functools

import facula
from facula.ops import aten


def mm(mat1, mat2, reduce=None):
    """Product of two matrices of which one or both are sparse.

    Gradients of sparse matrices have their positions alone.

    Args:
        mat1 (Tensor): (n, k), sparse or strided.
        mat2 (Tensor): (k, m), strided or sparse.
        reduce (str): of a CSR mat1: "sum", "mean", "amax" or "amin" of the products of a row's
            elements; None is the sum.

    Returns:
        Tensor: (n, m), strided unless both are sparse.

    Raises:
        RuntimeError: sizes or dtypes that do not fit.

    Example:
        >>> import facula
        >>> eye = facula.eye(2).to_sparse()
        >>> facula.sparse.mm(eye, facula.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[1., 2.],
                [3., 4.]])
    """
    if reduce is None:
        return aten._sparse_mm(mat1, mat2)
    return aten._sparse_mm.reduce(mat1, mat2, reduce)


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """beta * mat + alpha * mat1 @ mat2 of a sparse mat1, whose gradient has its positions alone.

    Args:
        mat (Tensor): (n, m), strided.
        mat1 (Tensor): (n, k), sparse.
        mat2 (Tensor): (k, m), strided.
        beta (Number): what mat is multiplied with.
        alpha (Number): what the product is multiplied with.

    Returns:
        Tensor: (n, m), strided.

    Raises:
        RuntimeError: sizes or dtypes that do not fit.

    Example:
        >>> import facula
        >>> facula.sparse.addmm(facula.ones(2, 2), facula.eye(2).to_sparse(), facula.ones(2, 2))
        tensor([[2., 2.],
                [2., 2.]])
    """
    return aten._sparse_addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input, dim=None, dtype=None):
    """Sum of a sparse_coo tensor's elements, whose gradient is sparse.

    Args:
        input (Tensor): of layout sparse_coo.
        dim (int or tuple of int): the dimensions to sum over; None for all.
        dtype (dtype): to sum in.

    Returns:
        Tensor: sparse_coo where a sparse dimension is left, else strided.

    Raises:
        RuntimeError: a dimension named twice, or another layout.

    Example:
        >>> import facula
        >>> facula.sparse.sum(facula.eye(3).to_sparse(), 0).to_dense()
        tensor([1., 1., 1.])
    """
    options = {} if dtype is None else {"dtype": dtype}
    # An empty list of dimensions counts as none given.
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return aten._sparse_sum.dtype(input, **options) if options else aten._sparse_sum(input)
    dims = [dim] if isinstance(dim, int) else list(dim)
    if options:
        return aten._sparse_sum.dim_dtype(input, dims, **options)
    return aten._sparse_sum.dim(input, dims)


def softmax(input, dim, *, dtype=None):
    """Softmax along a dimension of a sparse_coo tensor; what is not there counts as -inf.

    Args:
        input (Tensor): of layout sparse_coo, floating point.
        dim (int): the dimension along which the results add up to 1.
        dtype (dtype): to compute in.

    Returns:
        Tensor: of layout sparse_coo.

    Raises:
        NotImplementedError: another layout or dtype.

    Example:
        >>> import facula
        >>> facula.sparse.softmax(facula.eye(2).to_sparse(), 1).to_dense()
        tensor([[1., 0.],
                [0., 1.]])
    """
    return aten._sparse_softmax.int(input, dim, dtype)


def log_softmax(input, dim, *, dtype=None):
    """Logarithm of `softmax`.

    Args:
        input (Tensor): of layout sparse_coo, floating point.
        dim (int): the dimension along which the powers of the results add up to 1.
        dtype (dtype): to compute in.

    Returns:
        Tensor: of layout sparse_coo.

    Raises:
        NotImplementedError: another layout or dtype.

    Example:
        >>> import facula
        >>> facula.sparse.log_softmax(facula.eye(2).to_sparse(), 1)._values()
        tensor([0., 0.])
    """
    return aten._sparse_log_softmax.int(input, dim, dtype)


def solve(input, other, *, left=True, out=None):
    """Not supported: raises NotImplementedError (PyTorch's needs an accelerator)."""
    raise NotImplementedError("sparse.solve(): systems of sparse matrices are not implemented")


def spsolve(input, other, *, left=True):
    """Not supported: raises NotImplementedError (PyTorch's needs an accelerator)."""
    raise NotImplementedError("sparse.spsolve(): systems of sparse matrices are not implemented")


def spdiags(diagonals, offsets, shape, layout=None):
    """A sparse matrix of diagonals.

    Args:
        diagonals (Tensor): (diagonals, n), or one of (n): what stands in column j of a diagonal
            is its element j.
        offsets (Tensor): (diagonals), int64, no number twice: above (positive) or below the main
            diagonal.
        shape (tuple of int): rows and columns.
        layout (layout): sparse_coo, which is the default, sparse_csr or sparse_csc.

    Returns:
        Tensor: a matrix of that layout.

    Raises:
        RuntimeError: parts that do not fit, or another layout.

    Example:
        >>> import facula
        >>> d = facula.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> facula.sparse.spdiags(d, facula.tensor([0, 1]), (2, 2)).to_dense()
        tensor([[1., 4.],
                [0., 2.]])
    """
    rows_of = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    offsets = offsets.unsqueeze(0) if offsets.dim() == 0 else offsets
    _check_diagonals(rows_of, offsets, shape, layout)
    indices, values = [], []
    for k, offset in enumerate(offsets.tolist()):
        first, last = max(offset, 0), min(shape[0] + offset, shape[1], rows_of.shape[1])
        columns = facula.arange(first, max(first, last))
        indices.append(facula.stack([columns - offset, columns]))
        values.append(rows_of[k, first : max(first, last)])
    made = facula.sparse_coo_tensor(facula.cat(indices, 1), facula.cat(values), tuple(shape))
    return made if layout in (None, facula.sparse_coo) else made.to_sparse(layout=layout)


def _check_diagonals(diagonals, offsets, shape, layout):
    known = (None, facula.sparse_coo, facula.sparse_csr, facula.sparse_csc)
    tests = [
        (diagonals.dim() == 2, "diagonals must be a vector or a matrix"),
        (len(shape) == 2, "the shape must have two sizes"),
        (offsets.dim() == 1, "offsets must be a number or a vector"),
        (offsets.dtype == facula.int64, "offsets must be int64"),
        (offsets.numel() == diagonals.shape[0], "there must be as many offsets as diagonals"),
        (layout in known, "the layout must be sparse_coo, sparse_csr or sparse_csc"),
    ]
    for holds, text in tests:
        if not holds:
            raise RuntimeError(f"spdiags(): {text}")
    if len(set(offsets.tolist())) != offsets.numel():
        raise RuntimeError(f"spdiags(): offsets must be different; got {offsets.tolist()}")


def as_sparse_gradcheck(gradcheck):
    """`autograd.gradcheck` for functions of sparse tensors.

    Functions see sparse tensors; what is compared are derivatives by their values. With
    `masked=True` only positions that the tensors have count, otherwise all do.

    Args:
        gradcheck (callable): `facula.autograd.gradcheck` or a function like it.

    Returns:
        callable: with the same arguments and `masked` (bool), False by default.

    Example:
        >>> import facula
        >>> check = facula.sparse.as_sparse_gradcheck(facula.autograd.gradcheck)
        >>> x = facula.eye(2, dtype=facula.float64).to_sparse().requires_grad_()
        >>> check(lambda x: facula.sparse.sum(x * x), [x], masked=True)
        True
    """

    @functools.wraps(gradcheck)
    def checked(function, inputs, **options):
        masked = options.pop("masked", False)
        given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        parts, rebuild = _as_strided_inputs(given, masked)

        def of_parts(*tensors):
            found = function(*rebuild(tensors))
            outputs = found if isinstance(found, (list, tuple)) else (found,)
            dense = tuple(_dense(t, masked) for t in outputs)
            return dense if isinstance(found, (list, tuple)) else dense[0]

        return gradcheck(of_parts, tuple(parts), **options)

    return checked


def _dense(t, masked):
    is_sparse = isinstance(t, facula.Tensor) and t.layout != facula.strided
    return t.to_dense(masked_grad=masked) if is_sparse else t


def _as_strided_inputs(inputs, masked):
    """Strided tensors for all inputs, and what makes the inputs of them again.

    Of a sparse input that requires grad the values are taken, or, where all positions count,
    those of a tensor with an element at every position.
    """
    parts, makers = [], []
    for t in inputs:
        is_sparse = isinstance(t, facula.Tensor) and t.layout != facula.strided
        if not is_sparse or not t.requires_grad:
            parts.append(t)
            makers.append(lambda part, t=t: t if not isinstance(part, facula.Tensor) else part)
            continue
        like = t.detach()
        like = like.coalesce() if like.is_sparse else like
        if not masked:
            whole = facula.ones(like.shape, dtype=facula.float64)
            like = _at_all_positions(like, whole)
        parts.append(like.values().clone().requires_grad_())
        makers.append(functools.partial(aten._sparse_with_values, like))
    return parts, lambda tensors: [make(part) for make, part in zip(makers, tensors, strict=True)]


def _at_all_positions(t, ones):
    """The tensor with an element, perhaps zero, at each position."""
    if t.is_sparse:
        mask = ones.to_sparse(t.sparse_dim())
    elif t.layout in (facula.sparse_bsr, facula.sparse_bsc):
        batch = t.dim() - 2 - t.dense_dim()
        block = tuple(t.values().shape[batch + 1 : batch + 3])
        mask = ones.to_sparse(layout=t.layout, blocksize=block, dense_dim=t.dense_dim())
    else:
        mask = ones.to_sparse(layout=t.layout, dense_dim=t.dense_dim())
    return t.to_dense().sparse_mask(mask)
