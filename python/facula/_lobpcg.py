"""Some eigenvalues of a symmetric matrix, by products with it alone.

A. V. Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned
conjugate gradient method", SIAM Journal on Scientific Computing 23 (2001). The basis is made
orthonormal by singular values of its products: A. Stathopoulos, K. Wu, "A block orthogonalization
procedure with constant synchronization requirements", the same journal 23 (2002).
"""

from __future__ import annotations

import facula

__all__ = ["lobpcg"]

_DEFAULT_STEPS = 1000


def lobpcg(
    A,
    k=None,
    B=None,
    X=None,
    n=None,
    iK=None,
    niter=None,
    tol=None,
    largest=None,
    method=None,
    tracker=None,
    ortho_iparams=None,
    ortho_fparams=None,
    ortho_bparams=None,
):
    """The `k` greatest or least eigenvalues of `A x = e B x` and their vectors.

    Args:
        A (tensor): `(*, m, m)`, symmetric; float32 or float64.
        k (int): how many are wanted; as many as X has columns, or one.
        B (tensor): `(*, m, m)`, symmetric and positive definite; the identity unless given.
        X (tensor): `(*, m, n)`, the vectors to begin with; random ones unless given.
        n (int): how many vectors are iterated, k unless given.
        iK (tensor): `(*, m, m)`, an approximate inverse of A, which residuals are multiplied with.
        niter (int): the most steps, 1000 unless given; -1 stands for no limit.
        tol (float): a pair has converged once its residual is less than `tol` times the size of
            what it is the difference of; the square root of the dtype's precision unless given.
        largest (bool): whether the greatest are wanted, as they are unless it is False.
        method (str): "ortho" or "basic"; both are the method with an orthonormal basis here.
        tracker (callable): is called at each step with an object that holds its state: E, X, R,
            `ivars["istep"]`, `ivars["converged_count"]`, `tvars["rerr"]`; it ends the iteration by
            `bvars["force_stop"] = True`.
        ortho_iparams, ortho_fparams, ortho_bparams (dict): shown to the tracker.

    Returns:
        tuple: eigenvalues `(*, k)` and vectors `(*, m, k)`, which are orthonormal with respect
        to B. Their gradients are those of `A` made symmetric.

    Raises:
        TypeError: A is no tensor.
        ValueError: m is less than three times n, or a gradient is wanted with B.

    Example:
        >>> A = facula.diag(facula.arange(1., 10.))
        >>> facula.lobpcg(A, k=2)[0]
        tensor([9.0000, 8.0000])
    """
    tensors = (A, B, X, iK)
    if facula.overrides.has_torch_function(tensors):
        return facula.overrides.handle_torch_function(
            lobpcg, tensors, A, k=k, B=B, X=X, n=n, iK=iK, niter=niter, tol=tol, largest=largest,
            method=method, tracker=tracker, ortho_iparams=ortho_iparams,
            ortho_fparams=ortho_fparams, ortho_bparams=ortho_bparams,
        )  # fmt: skip
    facula.functional._check_tensors("lobpcg", A=A)
    options = _Options(A, k, B, X, n, niter, tol, largest, method, tracker)
    options.shown = (ortho_iparams or {}, ortho_fparams or {}, ortho_bparams or {})
    needs_gradient = A.requires_grad or (B is not None and B.requires_grad)
    if not (facula.is_grad_enabled() and needs_gradient):
        return _solve_batch(A, B, X, iK, options)
    if B is not None:
        raise ValueError("lobpcg(): gradients are known without B alone; got B")
    symmetric = (A + A.mT) / 2
    return _differentiable().apply(symmetric, X, iK, options)


class _Options:
    """What a call asks for, checked."""

    def __init__(self, A, k, B, X, n, niter, tol, largest, method, tracker):
        if A.dim() < 2 or A.shape[-2] != A.shape[-1]:
            raise AssertionError(f"lobpcg(): A must be square; got {tuple(A.shape)}")
        if B is not None and B.shape != A.shape:
            raise AssertionError(
                f"lobpcg(): A and B must have one shape; got {tuple(A.shape)} and {tuple(B.shape)}"
            )
        if A.dtype not in (facula.float32, facula.float64):
            raise RuntimeError(f"lobpcg(): expected float32 or float64; got {A.dtype}")
        self.rows = A.shape[-1]
        self.k = k if k is not None else 1 if X is None else X.shape[-1]
        self.columns = X.shape[-1] if X is not None else self.k if n is None else n
        if self.rows < 3 * self.columns:
            raise ValueError(
                "lobpcg(): A must have at least three rows for each vector; "
                f"got {self.rows} rows and {self.columns} vectors"
            )
        if X is not None and X.shape[-2:] != (self.rows, self.columns):
            raise AssertionError(
                f"lobpcg(): X must have {self.rows} rows; got a shape of {tuple(X.shape)}"
            )
        self.steps = _DEFAULT_STEPS if niter is None else niter
        self.tol = facula.finfo(A.dtype).eps ** 0.5 if tol is None else tol
        self.largest = largest is None or bool(largest)
        self.method = "ortho" if method is None else method
        self.tracker = tracker


def _solve_batch(A, B, X, iK, options):
    if A.dim() == 2:
        iteration = _Iteration(A, B, X, iK, options)
        iteration.run()
        return iteration.E[: options.k].clone(), iteration.X[:, : options.k].clone()
    batch = A.shape[:-2]

    def matrices(t):
        count = batch.numel()
        return [None] * count if t is None else t.expand(*batch, *t.shape[-2:]).flatten(0, -3)

    pairs = [
        _solve_batch(*parts, options) for parts in zip(*map(matrices, (A, B, X, iK)), strict=True)
    ]
    if not pairs:
        k = min(options.k, options.columns)
        return A.new_empty((*batch, k)), A.new_empty((*batch, options.rows, k))
    E, vectors = (facula.stack(parts) for parts in zip(*pairs, strict=True))
    return E.unflatten(0, batch), vectors.unflatten(0, batch)


def _product(matrix, t):
    return t if matrix is None else matrix @ t


def _orthonormal(S, B, precision):
    """A basis of the space of S's columns that is orthonormal with respect to B.

    Directions that rounding alone tells from the others are left out.
    """
    for _ in range(2):  # once leaves errors as great as the columns were far from orthogonal
        gram = S.mT @ _product(B, S)
        sizes = gram.diagonal().clamp_min(facula.finfo(S.dtype).tiny).rsqrt()
        values, vectors = facula.linalg.eigh(gram * sizes[:, None] * sizes)
        kept = values > precision * values[-1]
        S = S @ (sizes[:, None] * vectors[:, kept] * values[kept].rsqrt())
    return S


class _Iteration:
    """The state of the iteration of one matrix, as trackers see it."""

    def __init__(self, A, B, X, iK, options):
        self.A, self.B, self.iK, self.method = A, B, iK, options.method
        self.options = options
        self.precision = facula.finfo(A.dtype).eps
        if X is None:
            X = facula.randn(options.rows, options.columns, dtype=A.dtype, device=A.device)
        self.sizes = (self._size_of(A, X), 1.0 if B is None else self._size_of(B, X))
        self.iparams = {
            "m": options.rows,
            "n": options.columns,
            "k": options.k,
            "niter": options.steps,
            **options.shown[0],
        }
        self.fparams = {"tol": options.tol, **options.shown[1]}
        self.bparams = {"largest": options.largest, **options.shown[2]}
        self.ivars = {"istep": 0, "converged_count": 0}
        self.fvars = {}
        self.bvars = {"force_stop": False}
        self.tvars = {}
        self.P = A.new_empty(options.rows, 0)
        self._project(X)

    @staticmethod
    def _size_of(matrix, X):
        """About the norm of a matrix, from what it makes of the first vectors."""
        return float((matrix @ X).norm() / X.norm())

    def _project(self, S):
        """Takes the best pairs of the space that the columns of S span (Rayleigh and Ritz)."""
        n = self.options.columns
        self.S = basis = _orthonormal(S, self.B, self.precision)
        reduced = basis.mT @ _product(self.A, basis)
        values, vectors = facula.linalg.eigh((reduced + reduced.mT) / 2)
        if self.options.largest:
            values, vectors = values.flip(0), vectors.flip(1)
        previous = getattr(self, "X", None)
        self.E, self.X = values[:n], basis @ vectors[:, :n]
        if previous is not None:  # the direction: what the step added to the vectors before it
            self.P = self.X - previous @ (previous.mT @ _product(self.B, self.X))
        self.R = _product(self.A, self.X) - _product(self.B, self.X) * self.E
        scale = self.X.norm(dim=0) * (self.sizes[0] + self.E.abs() * self.sizes[1])
        error = self.tvars["rerr"] = self.R.norm(dim=0) / scale
        self.ivars["converged_count"] = int((error < self.options.tol).long().cumprod(0).sum())

    def run(self):
        """Steps until the pairs that are wanted have converged."""
        with facula.no_grad():
            while True:
                if self.options.tracker is not None:
                    self.options.tracker(self)
                if self._is_done():
                    return
                self.ivars["istep"] += 1
                self._project(facula.cat([self.X, self.P, _product(self.iK, self.R)], dim=1))

    def _is_done(self):
        wanted = min(self.options.k, self.options.columns)
        spent = 0 <= self.options.steps <= self.ivars["istep"]
        return spent or self.bvars["force_stop"] or self.ivars["converged_count"] >= wanted


def _gradient(A, E, X, E_grad, X_grad):
    """The gradient of A from those of some of its eigenvalues and vectors.

    A vector moves by (e - A)^+ dA x: among the vectors that are known by differences of
    eigenvalues, in the space beside them by a linear system for each.
    """
    inside = facula.zeros_like(X.mT @ X) if E_grad is None else facula.diag_embed(E_grad)
    if X_grad is None:
        return X @ inside @ X.mT
    gaps = E[..., None, :] - E[..., :, None]
    gaps.diagonal(0, -2, -1).fill_(float("inf"))
    inside = inside + (X.mT @ X_grad) / gaps
    beside = X_grad - X @ (X.mT @ X_grad)
    one = facula.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    # The vectors that are known are moved away from zero, so that the systems have solutions.
    moved = E[..., :, None, None] * one - A[..., None, :, :]
    moved = moved + (X @ X.mT)[..., None, :, :] * A.abs().amax((-2, -1))[..., None, None, None]
    outside = facula.linalg.solve(moved, beside.mT[..., None])[..., 0].mT
    outside = outside - X @ (X.mT @ outside)
    return X @ inside @ X.mT + outside @ X.mT


def _differentiable():
    """The function with its derivative, made when first asked for: autograd loads late."""
    global _Differentiable
    if _Differentiable is not None:
        return _Differentiable

    class LOBPCG(facula.autograd.Function):
        @staticmethod
        def forward(ctx, A, X, iK, options):
            E, vectors = _solve_batch(A, None, X, iK, options)
            ctx.save_for_backward(A, E, vectors)
            return E, vectors

        @staticmethod
        @facula.autograd.function.once_differentiable
        def backward(ctx, E_grad, X_grad):
            return _gradient(*ctx.saved_tensors, E_grad, X_grad), None, None, None

    _Differentiable = LOBPCG
    return LOBPCG


_Differentiable = None
