"""The LKJ distribution of correlation matrices."""

from __future__ import annotations

import math

import facula
from facula.distributions import constraints
from facula.distributions.beta import Beta
from facula.distributions.distribution import Distribution
from facula.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, with a density proportional to det^(c - 1).

    The density is that of the matrices, carried over to factors. Lewandowski, Kurowicka and Joe,
    Generating random correlation matrices based on vines and extended onion method (2009); draws
    are made by the onion method.

    Args:
        dim: the size of the matrices, 2 or more.
        concentration: c, positive; 1 makes all matrices equally probable.

    Raises:
        ValueError: dim is below 2.

    Example:
        >>> LKJCholesky(2).log_prob(facula.eye(2))
        tensor(-0.6931)
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        dtype, device = self.concentration.dtype, self.concentration.device
        # The squared length of what stands left of the diagonal is beta distributed, row by row.
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = facula.arange(dim - 1, dtype=dtype, device=device)
        offset = facula.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(
            self.concentration.size(), facula.Size((dim, dim)), validate_args=validate_args
        )

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LKJCholesky, _instance)
        batch_shape = facula.Size(batch_shape)
        new.dim = self.dim
        new.concentration = self.concentration.expand(batch_shape)
        new._beta = self._beta.expand(batch_shape + (self.dim,))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def sample(self, sample_shape=()):
        with facula.no_grad():
            length = self._beta.sample(sample_shape).unsqueeze(-1)
            normal = facula.randn(
                self._extended_shape(sample_shape), dtype=length.dtype, device=length.device
            ).tril(-1)
            direction = normal / normal.norm(dim=-1, keepdim=True)
            direction[..., 0, :].fill_(0.0)  # the first row is the diagonal alone
            left = facula.sqrt(length) * direction
            tiny = facula.finfo(left.dtype).tiny
            diagonal = facula.clamp(1 - facula.sum(left**2, dim=-1), min=tiny).sqrt()
            return left + facula.diag_embed(diagonal)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        # The factor's density is the product of powers of its diagonal; the normalizer is that of
        # section 3 of the paper.
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        row = facula.arange(2, self.dim + 1, device=self.concentration.device)
        power = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - row
        density = facula.sum(power * diagonal.log(), dim=-1)
        rows = self.dim - 1
        alpha = self.concentration + 0.5 * rows
        normalizer = facula.mvlgamma(alpha - 0.5, rows) - facula.lgamma(alpha) * rows
        return density - normalizer - 0.5 * rows * math.log(math.pi)
