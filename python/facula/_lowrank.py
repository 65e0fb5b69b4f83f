"""The greatest singular values of a matrix and their vectors, by random projections.

N. Halko, P. G. Martinsson, J. A. Tropp, "Finding structure with randomness: probabilistic
algorithms for constructing approximate matrix decompositions", SIAM Review 53 (2011).
"""

from __future__ import annotations

import facula

__all__ = ["svd_lowrank", "pca_lowrank"]


def get_approximate_basis(A, q, niter=2, M=None):
    """Orthonormal columns that nearly span those of a matrix (algorithm 4.4 of the paper).

    Args:
        A (tensor): `(*, m, n)`.
        q (int): how many random directions are projected.
        niter (int): iterations; each makes small singular values count less.
        M (tensor): is subtracted from A; broadcast to its shape.

    Returns:
        tensor: `(*, m, min(m, q))`.
    """
    if M is not None:
        A = A - M
    basis = A @ facula.randn(A.shape[-1], q, dtype=_float_dtype(A), device=A.device)
    for _ in range(2 if niter is None else niter):
        basis = facula.linalg.qr(basis).Q
        basis = A @ facula.linalg.qr(A.mH @ basis).Q
    return facula.linalg.qr(basis).Q


def _float_dtype(tensor):
    is_float = tensor.is_floating_point() or tensor.is_complex()
    return tensor.dtype if is_float else facula.get_default_dtype()


def svd_lowrank(A, q=6, niter=2, M=None):
    """The `q` greatest singular values of a matrix that is nearly of this rank, and their vectors.

    Args:
        A (tensor): `(*, m, n)`.
        q (int): a number somewhat greater than the rank.
        niter (int): iterations of the basis.
        M (tensor): is subtracted from A; broadcast to its shape.

    Returns:
        tuple: U `(*, m, q)`, S `(*, q)` and V `(*, n, q)`; A is nearly `U @ diag(S) @ V.mH`.

    Example:
        >>> A = facula.ones(3, 1) @ facula.ones(1, 4)
        >>> facula.svd_lowrank(A, q=2)[1][0]
        tensor(3.4641)
    """
    if facula.overrides.has_torch_function((A, M)):
        return facula.overrides.handle_torch_function(svd_lowrank, (A, M), A, q=q, niter=niter, M=M)
    facula.functional._check_tensors("svd_lowrank", A=A)
    q = 6 if q is None else q
    if M is not None:
        A = A - M
    rows, columns = A.shape[-2:]
    is_wide = rows < columns
    if is_wide:
        A = A.mH
    basis = get_approximate_basis(A, q, niter)
    U, S, Vh = facula.linalg.svd(basis.mH @ A, full_matrices=False)
    U, V = basis @ U, Vh.mH
    return (V, S, U) if is_wide else (U, S, V)


def pca_lowrank(A, q=None, center=True, niter=2):
    """The principal components of rows: `svd_lowrank` of a matrix whose columns are centred.

    Args:
        A (tensor): `(*, m, n)`, m samples of n features.
        q (int): how many components; 6, or as many as the matrix has rows or columns.
        center (bool): subtract each column's mean.
        niter (int): iterations of the basis.

    Returns:
        tuple: U `(*, m, q)`, S `(*, q)` and V `(*, n, q)`; the columns of V are the directions.

    Raises:
        ValueError: q or niter is negative, or q greater than a side of the matrix.
    """
    if facula.overrides.has_torch_function((A,)):
        return facula.overrides.handle_torch_function(
            pca_lowrank, (A,), A, q=q, center=center, niter=niter
        )
    facula.functional._check_tensors("pca_lowrank", A=A)
    side = min(A.shape[-2:])
    q = min(6, side) if q is None else q
    if not 0 <= q <= side:
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={side}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
