"""The von Mises distribution."""

from __future__ import annotations

import math

import facula
from facula.distributions import constraints
from facula.distributions.distribution import Distribution
from facula.distributions.utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


def _log_bessel(x, order):
    """The logarithm of the modified Bessel function of order 0 or 1."""
    scaled = facula.special.i0e(x) if order == 0 else facula.special.i1e(x)
    return scaled.log() + x


class VonMises(Distribution):
    """Angles in radians, gathered around `loc`.

    Args:
        loc: the centre.
        concentration: positive; about the inverse variance where it is large.

    Example:
        >>> VonMises(facula.tensor(0.0), facula.tensor(1.0)).log_prob(facula.tensor(0.0))
        tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, facula.Size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        # With _instance a subclass fills in its own; without it everything is made anew.
        validate = self.__dict__.get("_validate_args")
        loc = self.loc.expand(batch_shape)
        concentration = self.concentration.expand(batch_shape)
        return type(self)(loc, concentration, validate_args=validate)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        density = self.concentration * facula.cos(value - self.loc)
        return density - math.log(2 * math.pi) - _log_bessel(self.concentration, 0)

    @lazy_property
    def _loc(self):
        return self.loc.to(facula.double)

    @lazy_property
    def _concentration(self):
        return self.concentration.to(facula.double)

    @lazy_property
    def _proposal_r(self):
        """The parameter of the wrapped Cauchy distribution that candidates come from."""
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        exact = (1 + rho**2) / (2 * rho)
        return facula.where(kappa < 1e-5, 1 / kappa + kappa, exact)  # rho loses its digits there

    def sample(self, sample_shape=()):
        """Draws by rejection (Best and Fisher, 1979), in double whatever the dtype."""
        shape = self._extended_shape(sample_shape)
        with facula.no_grad():
            x = facula.empty(shape, dtype=self._loc.dtype, device=self.loc.device)
            return self._draw(x).to(self.loc.dtype)

    def _draw(self, x):
        loc, kappa, r = self._loc, self._concentration, self._proposal_r
        done = facula.zeros(x.shape, dtype=facula.bool, device=loc.device)
        while not done.all():
            first, second, third = facula.rand((3,) + x.shape, dtype=loc.dtype, device=loc.device)
            z = facula.cos(math.pi * first)
            cosine = (1 + r * z) / (r + z)
            c = kappa * (r - cosine)
            accepted = ((c * (2 - c) - second) > 0) | ((c / second).log() + 1 - c >= 0)
            if accepted.any():
                x = facula.where(accepted, (third - 0.5).sign() * cosine.acos(), x)
                done = done | accepted
        return (x + math.pi + loc) % (2 * math.pi) - math.pi

    @property
    def mean(self):
        """The circular mean."""
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        """The circular variance."""
        ratio = _log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0)
        return 1 - ratio.exp()
