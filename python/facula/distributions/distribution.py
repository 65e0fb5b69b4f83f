"""The base class of probability distributions."""

from __future__ import annotations

import warnings

import facula
from facula.distributions import constraints
from facula.distributions.utils import lazy_property

__all__ = ["Distribution"]


def _listed(value):
    return f"({type(value).__name__} of shape {tuple(value.shape)})"


class Distribution:
    """What every distribution offers.

    A batch of distributions has a shape, `batch_shape`, and so has one draw, `event_shape`; samples
    have the shape `sample_shape + batch_shape + event_shape`.

    Args:
        batch_shape: the shape of the parameters, event dimensions left out.
        event_shape: the shape of one draw.
        validate_args: whether arguments and values are checked; None: as
            `set_default_validate_args` says.

    Raises:
        ValueError: a parameter is outside of its constraint.

    Example:
        >>> from facula.distributions import Normal
        >>> Normal(facula.zeros(3), 1.0).batch_shape
        facula.Size([3])
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        """Says whether distributions check arguments and values unless told otherwise.

        Raises:
            ValueError: value is not a bool.

        Example:
            >>> Distribution.set_default_validate_args(True)
        """
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args(): expected a bool; got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape = facula.Size(batch_shape)
        self._event_shape = facula.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self):
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`: its parameters are not checked. "
                "Set `arg_constraints = {}` or validate_args=False to turn this warning off.",
                stacklevel=3,
            )
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue  # what it depends on may not be there yet
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # computed from parameters that are checked
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} {_listed(value)} of distribution {self!r} to "
                    f"satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape, _instance=None):
        """The same distribution with its parameters expanded, as views, to another batch shape.

        Args:
            batch_shape: the new shape, to which the present one can be broadcast.
            _instance: what a subclass gives to have its own attributes filled in.

        Example:
            >>> from facula.distributions import Normal
            >>> Normal(0.0, 1.0).expand((2,)).batch_shape
            facula.Size([2])
        """
        raise NotImplementedError

    @property
    def batch_shape(self):
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one draw."""
        return self._event_shape

    @property
    def arg_constraints(self):
        """The constraint of each parameter by name."""
        raise NotImplementedError

    @property
    def support(self):
        """The constraint that draws satisfy."""
        raise NotImplementedError

    @property
    def mean(self):
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self):
        """The most probable value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self):
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self):
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape=()):
        """Draws without gradient, of shape sample_shape + batch_shape + event_shape."""
        with facula.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        """Draws that are differentiable by the parameters (reparameterized)."""
        raise NotImplementedError

    def sample_n(self, n):
        """n draws, or n batches of them; deprecated for `sample((n,))`."""
        warnings.warn(
            "sample_n will be deprecated: use sample((n,)) instead", FutureWarning, stacklevel=2
        )
        return self.sample(facula.Size((n,)))

    def log_prob(self, value):
        """The logarithm of the density or probability at `value`."""
        raise NotImplementedError

    def cdf(self, value):
        """The probability of draws up to `value`."""
        raise NotImplementedError

    def icdf(self, value):
        """The quantile: where `cdf` has the given value."""
        raise NotImplementedError

    def enumerate_support(self, expand=True):
        """All values of a discrete distribution, along a new first dimension.

        Args:
            expand: whether the batch dimensions are expanded, or stay of size one.
        """
        raise NotImplementedError

    def entropy(self):
        """The entropy in nats, of shape batch_shape."""
        raise NotImplementedError

    def perplexity(self):
        """e to the entropy, of shape batch_shape."""
        return facula.exp(self.entropy())

    def _extended_shape(self, sample_shape=()):
        if not isinstance(sample_shape, facula.Size):
            sample_shape = facula.Size(sample_shape)
        return facula.Size(sample_shape + self._batch_shape + self._event_shape)

    def _validate_sample(self, value):
        """ValueError where a value has a wrong shape or is outside of the support."""
        if not isinstance(value, facula.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event_dim_start = value.dim() - len(self._event_shape)
        if value.shape[event_dim_start:] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{value.shape} vs {expected}."
                )
        self._check_support(value)

    def _check_support(self, value):
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support`: values are not checked. Use "
                "validate_args=False to turn this warning off.",
                stacklevel=4,
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument {_listed(value)} to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def _expanded(self, cls, names, batch_shape, _instance, event_shape=()):
        """`expand` of a class whose parameters, of those names, all have the batch shape.

        Names that this distribution has not computed yet are left for later.
        """
        new = self._get_checked_instance(cls, _instance)
        batch_shape = facula.Size(batch_shape)
        for name in names:
            if name in self.__dict__:
                setattr(
                    new, name, self.__dict__[name].expand(batch_shape + facula.Size(event_shape))
                )
        Distribution.__init__(new, batch_shape, event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def __repr__(self):
        shown = {
            name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__
        }
        parts = [f"{name}: {v if v.numel() == 1 else v.size()}" for name, v in shown.items()]
        return f"{type(self).__name__}({', '.join(parts)})"
