"""Decompositions by their names of before PyTorch 1.9; calling one says what took its place."""

from __future__ import annotations


def _gone(name, instead):
    raise RuntimeError(f"{name}(): was removed in favour of {instead}")


def qr(input, some=True, *, out=None):
    """Removed: `facula.linalg.qr`."""
    mode = "reduced" if some else "complete"
    _gone("qr", f"linalg.qr; some={some} is linalg.qr(A, mode={mode!r})")


def cholesky(input, upper=False, *, out=None):
    """Removed: `facula.linalg.cholesky`."""
    _gone("cholesky", f"linalg.cholesky; cholesky(A, {upper}) is linalg.cholesky(A, upper={upper})")


def solve(input, A, *, out=None):
    """Removed: `facula.linalg.solve`, whose arguments stand the other way round."""
    _gone("solve", "linalg.solve; solve(B, A).solution is linalg.solve(A, B)")


def lstsq(input, A, *, out=None):
    """Removed: `facula.linalg.lstsq`, whose arguments stand the other way round."""
    _gone("lstsq", "linalg.lstsq; lstsq(B, A) is linalg.lstsq(A, B)")


def eig(self, eigenvectors=False, *, e=None, v=None):
    """Removed: `facula.linalg.eig` and `eigvals`, whose results are complex."""
    _gone("eig", f"linalg.{'eig' if eigenvectors else 'eigvals'}, whose results are complex")


def symeig(input, eigenvectors=False, upper=True, *, out=None):
    """Removed: `facula.linalg.eigh` and `eigvalsh`, which read the lower triangle."""
    name = "eigh" if eigenvectors else "eigvalsh"
    _gone("symeig", f"linalg.{name}(A, UPLO={('U' if upper else 'L')!r})")


def matrix_rank(input, tol=None, symmetric=False, *, out=None):
    """Removed: `facula.linalg.matrix_rank`, where `symmetric` is called `hermitian`."""
    _gone("matrix_rank", "linalg.matrix_rank, where symmetric is called hermitian")
