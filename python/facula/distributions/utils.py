"""What distributions share: broadcasting of parameters, probabilities and logits, triangles."""

from __future__ import annotations

from functools import update_wrapper
from numbers import Number

import facula
import facula.nn.functional as F
from facula.overrides import is_tensor_like

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060  # Euler-Mascheroni


def broadcast_all(*values):
    """Tensors of one shape from numbers and tensors.

    Args:
        values: numbers and tensors; numbers take the dtype and device of the first tensor, or the
            default dtype where there is none.

    Returns:
        A list of tensors.

    Raises:
        ValueError: a value is neither.

    Example:
        >>> broadcast_all(1.0, facula.zeros(2))
        [tensor([1., 1.]), tensor([0., 0.])]
    """
    if not all(is_tensor_like(v) or isinstance(v, Number) for v in values):
        kinds = [type(v).__name__ for v in values]
        raise ValueError(f"broadcast_all(): values must be numbers or tensors; got {kinds}")
    like = next((v for v in values if is_tensor_like(v)), None)
    dtype = facula.get_default_dtype() if like is None else like.dtype
    device = None if like is None else like.device
    tensors = [
        v if is_tensor_like(v) else facula.tensor(v, dtype=dtype, device=device) for v in values
    ]
    return list(facula.broadcast_tensors(*tensors))


def check_one_given(distribution, probs, logits):
    """Raise ValueError unless exactly one of `probs` and `logits` is given."""
    if (probs is None) == (logits is None):
        got = "neither" if probs is None else "both"
        name = type(distribution).__name__
        raise ValueError(f"{name}(): expected `probs` or `logits`, not both; got {got}")


def _standard_normal(shape, dtype, device):
    return facula.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value, dim):
    """The sum over the last `dim` dimensions of a tensor; other values come back as they are."""
    if dim == 0 or not is_tensor_like(value):
        return value
    return value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits, is_binary=False):
    """Probabilities of logits: by the logistic function if `is_binary`, else by softmax.

    Example:
        >>> logits_to_probs(facula.zeros(2))
        tensor([0.5000, 0.5000])
    """
    if is_binary:
        return facula.sigmoid(logits)
    return F.softmax(logits, dim=-1)


def clamp_probs(probs):
    """Probabilities moved into [eps, 1 - eps] of their dtype, so that logits are finite.

    Example:
        >>> clamp_probs(facula.tensor([0.0, 0.5])) > 0
        tensor([True, True])
    """
    eps = facula.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """Logits of probabilities: log odds if `is_binary`, else logarithms.

    Example:
        >>> probs_to_logits(facula.tensor([0.5]), is_binary=True)
        tensor([0.])
    """
    clamped = clamp_probs(probs)
    if is_binary:
        return facula.log(clamped) - facula.log1p(-clamped)
    return facula.log(clamped)


class lazy_property:
    """A property that is computed, with gradients, when first read; then it is an attribute.

    Example:
        >>> class Circle:
        ...     radius = 2.0
        ...
        ...     @lazy_property
        ...     def area(self):
        ...         return 3 * self.radius**2
        >>> Circle().area
        12.0
    """

    def __init__(self, wrapped):
        self.wrapped = wrapped
        update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with facula.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What a class shows of a lazy property: code that asks for a property finds one."""

    def __init__(self, wrapped):
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat, diag=0):
    """The lower triangles of matrices (..., d, d), up to a diagonal, as vectors row by row.

    Args:
        mat: the matrices.
        diag: the last diagonal taken, in [-d, d).

    Raises:
        ValueError: `diag` is outside.

    Example:
        >>> tril_matrix_to_vec(facula.tensor([[1, 0], [2, 3]]))
        tensor([1, 2, 3])
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"tril_matrix_to_vec(): diag must be in [{-n}, {n - 1}]; got {diag}")
    rows, columns = facula.tril_indices(n, n, offset=diag, device=mat.device).unbind(0)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec, diag=0):
    """Lower triangular matrices from vectors of their elements, row by row.

    Args:
        vec: (..., n), where n elements fill a triangle.
        diag: the last diagonal that they reach.

    Raises:
        ValueError: no triangle has n elements.

    Example:
        >>> vec_to_tril_matrix(facula.tensor([1.0, 2.0, 3.0]))
        tensor([[1., 0.],
                [2., 3.]])
    """
    count = vec.shape[-1]
    n = 1
    while _triangle_size(n, diag) < count:
        n += 1
    if _triangle_size(n, diag) != count:
        raise ValueError(f"vec_to_tril_matrix(): {count} elements fill no triangle up to {diag=}")
    rows, columns = facula.tril_indices(n, n, offset=diag, device=vec.device).unbind(0)
    matrix = facula.zeros((*vec.shape[:-1], n, n), dtype=vec.dtype, device=vec.device)
    matrix[..., rows, columns] = vec
    return matrix


def _triangle_size(n, diag):
    return sum(min(max(row + 1 + diag, 0), n) for row in range(n))
