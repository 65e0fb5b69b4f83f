"""The multivariate normal distribution whose covariance has low rank but for its diagonal."""

from __future__ import annotations

import math

import facula
from facula.distributions import constraints
from facula.distributions.distribution import Distribution
from facula.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv
from facula.distributions.utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _batch_capacitance_tril(W, D):
    """The Cholesky factor of I + W^T D^-1 W, which has the size of the rank alone."""
    m = W.size(-1)
    K = facula.matmul(W.mT / D.unsqueeze(-2), W).contiguous()
    K.view(-1, m * m)[:, :: m + 1] += 1  # the diagonal
    return facula.linalg.cholesky(K)


def _batch_lowrank_logdet(D, capacitance_tril):
    """log det (W W^T + D), by the matrix determinant lemma."""
    return 2 * capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W, D, x, capacitance_tril):
    """x^T (W W^T + D)^-1 x, by Woodbury's identity."""
    projected = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, projected)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with the covariance cov_factor cov_factor^T + diag(cov_diag).

    Densities cost the square of the rank where a full covariance costs that of the dimension
    (Woodbury's identity and the matrix determinant lemma).

    Args:
        loc: (..., n), the mean.
        cov_factor: (..., n, rank).
        cov_diag: (..., n), positive.

    Raises:
        ValueError: shapes do not fit.

    Example:
        >>> d = LowRankMultivariateNormal(facula.zeros(2), facula.ones(2, 1), facula.ones(2))
        >>> d.covariance_matrix
        tensor([[2., 1.],
                [1., 2.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batches"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = facula.broadcast_shapes(
                loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        batch_shape = facula.Size(batch_shape)
        shape = batch_shape + self.event_shape
        new.loc = self.loc.expand(shape)
        new.cov_diag = self.cov_diag.expand(shape)
        new.cov_factor = self.cov_factor.expand(shape + self.cov_factor.shape[-1:])
        new._unbroadcasted_cov_factor = self._unbroadcasted_cov_factor
        new._unbroadcasted_cov_diag = self._unbroadcasted_cov_diag
        new._capacitance_tril = self._capacitance_tril
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expanded_matrix(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        """The variances, of shape batch_shape + event_shape."""
        variance = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The Cholesky factor of the covariance."""
        # D^1/2 (I + D^-1/2 W W^T D^-1/2) D^1/2: the middle is far from singular.
        n = self._event_shape[0]
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        K = facula.matmul(scaled, scaled.mT).contiguous()
        K.view(-1, n * n)[:, :: n + 1] += 1
        return self._expanded_matrix(root * facula.linalg.cholesky(K))

    @lazy_property
    def covariance_matrix(self):
        """The covariance."""
        W = self._unbroadcasted_cov_factor
        diagonal = facula.diag_embed(self._unbroadcasted_cov_diag)
        return self._expanded_matrix(facula.matmul(W, W.mT) + diagonal)

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance."""
        D = self._unbroadcasted_cov_diag
        scaled = self._unbroadcasted_cov_factor.mT / D.unsqueeze(-2)
        A = facula.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._expanded_matrix(facula.diag_embed(D.reciprocal()) - facula.matmul(A.mT, A))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        of_factor = shape[:-1] + self.cov_factor.shape[-1:]
        like = {"dtype": self.loc.dtype, "device": self.loc.device}
        first, second = _standard_normal(of_factor, **like), _standard_normal(shape, **like)
        scaled = self._unbroadcasted_cov_diag.sqrt() * second
        return self.loc + _batch_mv(self._unbroadcasted_cov_factor, first) + scaled

    def _log_det(self):
        return _batch_lowrank_logdet(self._unbroadcasted_cov_diag, self._capacitance_tril)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        square = _batch_lowrank_mahalanobis(
            self._unbroadcasted_cov_factor,
            self._unbroadcasted_cov_diag,
            value - self.loc,
            self._capacitance_tril,
        )
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + self._log_det() + square)

    def entropy(self):
        n = self._event_shape[0]
        entropy = 0.5 * (n * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return entropy.expand(self._batch_shape)
