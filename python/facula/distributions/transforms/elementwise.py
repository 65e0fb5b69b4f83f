"""Transforms of numbers."""

from __future__ import annotations

import math
from numbers import Number

import facula
import facula.nn.functional as F
from facula.distributions import constraints
from facula.distributions.transforms.base import Transform, _Elementwise
from facula.distributions.utils import broadcast_all, lazy_property


class ExpTransform(_Elementwise):
    """y = exp(x).

    Example:
        >>> ExpTransform()(facula.tensor(0.0))
        tensor(1.)
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    """y = x to the power of an exponent, for positive numbers.

    Args:
        exponent: a number or tensor, not zero.
        cache_size: 0 or 1.

    Example:
        >>> PowerTransform(2.0)(facula.tensor(3.0))
        tensor(9.)
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return PowerTransform(self.exponent, cache_size=cache_size)

    @lazy_property
    def sign(self):
        return self.exponent.sign()

    def __eq__(self, other):
        if not isinstance(other, PowerTransform):
            return False
        return self.exponent.eq(other.exponent).all().item()

    __hash__ = None

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return facula.broadcast_shapes(shape, self.exponent.shape)

    def inverse_shape(self, shape):
        return facula.broadcast_shapes(shape, self.exponent.shape)


def _clipped_sigmoid(x):
    """The logistic function, kept inside of (0, 1) so that it has an inverse."""
    info = facula.finfo(x.dtype)
    return facula.clamp(facula.sigmoid(x), min=info.tiny, max=1.0 - info.eps)


class SigmoidTransform(_Elementwise):
    """y = 1 / (1 + exp(-x)).

    Example:
        >>> SigmoidTransform()(facula.tensor(0.0))
        tensor(0.5000)
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def _call(self, x):
        return _clipped_sigmoid(x)

    def _inverse(self, y):
        info = facula.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Elementwise):
    """y = log(1 + exp(x)).

    Example:
        >>> SoftplusTransform()(facula.tensor(0.0))
        tensor(0.6931)
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x):
        return F.softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -F.softplus(-x)


class TanhTransform(_Elementwise):
    """y = tanh(x).

    Near 1 and -1 the inverse loses digits: a cache avoids it.

    Example:
        >>> TanhTransform()(facula.tensor(0.0))
        tensor(0.)
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return facula.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        # log(1 - tanh(x)^2), written so that it stays finite.
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(_Elementwise):
    """y = |x|; the inverse gives the positive one.

    Example:
        >>> AbsTransform()(facula.tensor(-2.0))
        tensor(2.)
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


def _same(a, b):
    """Whether two numbers or tensors are equal everywhere."""
    if isinstance(a, Number) and isinstance(b, Number):
        return a == b
    return (a == b).all().item()


class AffineTransform(Transform):
    """y = loc + scale * x.

    Args:
        loc: a number or tensor.
        scale: a number or tensor, not zero.
        event_dim: how many dimensions one point has.
        cache_size: 0 or 1.

    Example:
        >>> AffineTransform(1.0, 2.0)(facula.tensor(3.0))
        tensor(7.)
    """

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self):
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        if self.event_dim == 0:
            return constraints.real
        return constraints.independent(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self.domain

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other):
        if not isinstance(other, AffineTransform):
            return False
        return _same(self.loc, other.loc) and _same(self.scale, other.scale)

    __hash__ = None

    @property
    def sign(self):
        if isinstance(self.scale, Number):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        shape = x.shape
        if isinstance(self.scale, Number):
            result = facula.full_like(x, math.log(abs(self.scale)))
        else:
            result = facula.abs(self.scale).log()
        if self.event_dim:
            result = result.reshape(result.shape[: -self.event_dim] + (-1,)).sum(-1)
            shape = shape[: -self.event_dim]
        return result.expand(shape)

    def forward_shape(self, shape):
        return self._broadcast(shape)

    def inverse_shape(self, shape):
        return self._broadcast(shape)

    def _broadcast(self, shape):
        parameters = (getattr(v, "shape", ()) for v in (self.loc, self.scale))
        return facula.broadcast_shapes(shape, *parameters)


class CumulativeDistributionTransform(Transform):
    """y = P(x) for the distribution function P: draws become uniform numbers.

    Args:
        distribution: one with `cdf` and `icdf`.
        cache_size: 0 or 1.

    Example:
        >>> from facula.distributions import Normal
        >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(facula.tensor(0.0))
        tensor(0.5000)
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self):
        return self.distribution.support

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
