"""Transforms to the simplex and to matrices."""

from __future__ import annotations

import math

import facula
import facula.nn.functional as F
from facula.distributions import constraints
from facula.distributions.transforms.base import Transform, _Elementwise
from facula.distributions.transforms.elementwise import _clipped_sigmoid
from facula.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix


class CorrCholeskyTransform(Transform):
    """Vectors of d (d - 1) / 2 numbers to Cholesky factors of d x d correlation matrices.

    Each number becomes, by tanh, a partial correlation; each row of the factor is a unit vector,
    filled from the left by what remains of its length (Lewandowski, Kurowicka and Joe, 2009).

    Example:
        >>> CorrCholeskyTransform()(facula.zeros(1))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        eps = facula.finfo(x.dtype).eps
        x = facula.tanh(x).clamp(min=-1 + eps, max=1 - eps)
        partial = vec_to_tril_matrix(x, diag=-1)
        rest = (1 - partial**2).sqrt().cumprod(-1)
        partial = partial + facula.eye(partial.shape[-1], dtype=x.dtype, device=x.device)
        return partial * F.pad(rest[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        # What the elements on the left leave of a row's length.
        rest = F.pad((1 - facula.cumsum(y * y, dim=-1))[..., :-1], [1, 0], value=1)
        partial = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(rest, diag=-1).sqrt()
        return (partial.log1p() - partial.neg().log1p()) / 2  # atanh

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        # The triangular Jacobian has a diagonal of derivatives of tanh times square roots of rests.
        rest = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        of_rows = 0.5 * rest.log().sum(-1)
        of_tanh = -2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return of_rows + of_tanh

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        count = shape[-1]
        d = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (d, d)

    def inverse_shape(self, shape):
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        d = shape[-1]
        return shape[:-2] + (d * (d - 1) // 2,)


class SoftmaxTransform(_Elementwise):
    """Vectors to the simplex by y = softmax(x); the inverse is log.

    Not one-to-one: use `StickBreakingTransform` where a Jacobian is needed.

    Example:
        >>> SoftmaxTransform()(facula.zeros(2))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    def inverse_shape(self, shape):
        return self.forward_shape(shape)


class StickBreakingTransform(_Elementwise):
    """Vectors of n numbers to the simplex of n + 1 by breaking pieces off a stick.

    Each number says, by the logistic function, which share of the rest is broken off; offsets make
    zero the centre of the simplex.

    Example:
        >>> StickBreakingTransform()(facula.zeros(1))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _pieces_left(count, like):
        """count - 1, count - 2, ...: how many pieces are still to come, at each break."""
        return count - like.new_ones(like.shape[-1]).cumsum(-1)

    def _call(self, x):
        left = self._pieces_left(x.shape[-1] + 1, x)
        share = _clipped_sigmoid(x - left.log())
        rest = (1 - share).cumprod(-1)
        return F.pad(share, [0, 1], value=1) * F.pad(rest, [1, 0], value=1)

    def _inverse(self, y):
        pieces = y[..., :-1]
        left = self._pieces_left(y.shape[-1], pieces)
        rest = (1 - pieces.cumsum(-1)).clamp(min=facula.finfo(y.dtype).tiny)
        return pieces.log() - rest.log() + left.log()

    def log_abs_det_jacobian(self, x, y):
        x = x - self._pieces_left(x.shape[-1] + 1, x).log()
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(_Elementwise):
    """Matrices to lower triangular ones with a positive diagonal: the exponential of theirs.

    Example:
        >>> LowerCholeskyTransform()(facula.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Elementwise):
    """Matrices to positive definite ones: products of a Cholesky factor with itself.

    Example:
        >>> PositiveDefiniteTransform()(facula.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(facula.linalg.cholesky(y))
