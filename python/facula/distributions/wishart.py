"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings

import facula
from facula.distributions import constraints
from facula.distributions.chi2 import Chi2
from facula.distributions.distribution import Distribution
from facula.distributions.exp_family import ExponentialFamily
from facula.distributions.multivariate_normal import _precision_to_scale_tril
from facula.distributions.utils import lazy_property

__all__ = ["Wishart"]


def _mvdigamma(x, p):
    """The derivative of the multivariate log gamma function of dimension p."""
    halves = facula.arange(p, dtype=x.dtype, device=x.device).div(2)
    return facula.digamma(x.unsqueeze(-1) - halves.expand(x.shape + (-1,))).sum(-1)


def _log_det(matrix):
    """log det of positive definite matrices."""
    factor = facula.linalg.cholesky(matrix)
    return 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class Wishart(ExponentialFamily):
    """Positive definite matrices: sums of `df` outer products of normal vectors.

    Args:
        df: degrees of freedom, above n - 1.
        covariance_matrix: (..., n, n), that of the vectors; or
        precision_matrix: (..., n, n), its inverse; or
        scale_tril: (..., n, n), its Cholesky factor.

    Raises:
        ValueError: not one matrix is given, or df is too small.

    Example:
        >>> Wishart(facula.tensor(2.0), covariance_matrix=facula.eye(2)).mean
        tensor([[2., 0.],
                [0., 2.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self):
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df,
        covariance_matrix=None,
        precision_matrix=None,
        scale_tril=None,
        validate_args=None,
    ):
        matrices = {
            "scale_tril": scale_tril,
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
        }
        given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        ((name, matrix),) = given
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batches"
            )
        if not isinstance(df, facula.Tensor):
            df = facula.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape = facula.broadcast_shapes(matrix.shape[:-2], df.shape)
        event_shape = matrix.shape[-2:]
        if df.le(event_shape[-1] - 1).any():
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}."
            )
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self.df = df.expand(batch_shape)
        # As `_batch_shape` and `_event_shape` are needed by the constraints:
        self._batch_shape, self._event_shape = batch_shape, event_shape
        if self.df.lt(event_shape[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = facula.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)
        self._dist_chi2 = self._chi2()

    def _chi2(self):
        """The squares on the diagonal of Bartlett's factor."""
        n = self._event_shape[-1]
        fewer = facula.arange(n, dtype=self.df.dtype, device=self.df.device)
        return Chi2(df=self.df.unsqueeze(-1) - fewer.expand(self._batch_shape + (-1,)))

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = facula.Size(batch_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(
            batch_shape + self.event_shape
        )
        new.df = self.df.expand(batch_shape)
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand(batch_shape + self.event_shape))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._dist_chi2 = new._chi2()
        new._validate_args = self._validate_args
        return new

    def _expanded_matrix(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The Cholesky factor of the covariance."""
        return self._expanded_matrix(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        """The covariance of the vectors."""
        factor = self._unbroadcasted_scale_tril
        return self._expanded_matrix(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance."""
        return self._expanded_matrix(facula.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self):
        return self.df.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mode(self):
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = facula.where(factor <= 0, facula.nan, factor)
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self):
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view(self._batch_shape + (1, 1)) * (V.pow(2) + outer)

    def _bartlett_sampling(self, sample_shape=()):
        """Draws by Bartlett's decomposition (1933)."""
        n = self._event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape).clamp_min(facula.finfo(self.df.dtype).tiny)
        noise = facula.diag_embed(noise.sqrt())
        rows, columns = facula.tril_indices(n, n, offset=-1, device=noise.device).unbind(0)
        below = facula.randn(
            facula.Size(sample_shape) + self._batch_shape + (n * (n - 1) // 2,),
            dtype=noise.dtype,
            device=noise.device,
        )
        noise[..., rows, columns] = below
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape=(), max_try_correction=None):
        """Draws; those that rounding made singular are drawn again, a few times.

        Args:
            sample_shape: the shape of the sample.
            max_try_correction: how often at most; None: 10 times.
        """
        if max_try_correction is None:
            max_try_correction = 10
        sample_shape = facula.Size(sample_shape)
        # PyTorch draws twice and keeps the second: so do we, to have its numbers.
        self._bartlett_sampling(sample_shape)
        sample = self._bartlett_sampling((sample_shape.numel(),))
        is_singular = self._is_singular(sample)
        if is_singular.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            sample = self._redrawn(sample, is_singular, max_try_correction)
        return sample.reshape(self._extended_shape(sample_shape))

    def _redrawn(self, sample, is_singular, tries):
        """A sample with what is singular drawn again, until nothing is or the tries are spent."""
        for _ in range(tries):
            again = self._bartlett_sampling((int(is_singular.sum()),))
            sample = sample.index_put((is_singular,), again)
            is_singular = self._is_singular(sample)
            if not is_singular.any():
                break
        return sample

    def _is_singular(self, sample):
        """For each of n draws, whether a matrix of its batch is not positive definite."""
        return ~self.support.check(sample.detach()).reshape(sample.shape[0], -1).all(-1)

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        scaled = facula.cholesky_solve(value, self._unbroadcasted_scale_tril)
        trace = scaled.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        normalizer = nu * (p * math.log(2) / 2 + self._half_log_det())
        normalizer = normalizer + facula.mvlgamma(nu / 2, p=p)
        return (nu - p - 1) / 2 * _log_det(value) - trace / 2 - normalizer

    def entropy(self):
        nu, p = self.df, self._event_shape[-1]
        scale = (p + 1) * (p * math.log(2) / 2 + self._half_log_det())
        slopes = (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p)
        return scale + facula.mvlgamma(nu / 2, p=p) - slopes + nu * p / 2

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (p * math.log(2) - _log_det(-2 * x)) + facula.mvlgamma(half, p=p)
