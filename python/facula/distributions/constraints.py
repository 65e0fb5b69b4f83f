"""Constraints: which values a parameter or a draw may take.

Those in lower case are either objects (`real`, `simplex`) or classes that take bounds
(`greater_than`).
"""

from __future__ import annotations

import facula

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region, over which a variable may be optimized.

    `is_discrete` says whether it consists of isolated points, `event_dim` how many rightmost
    dimensions of a tensor make one point.

    Example:
        >>> positive.check(facula.tensor([1.0, -1.0]))
        tensor([ True, False])
    """

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """For each point of `value`, whether it is inside: a bool tensor of the batch shape."""
        raise NotImplementedError

    def __repr__(self):
        return f"{type(self).__name__.lstrip('_')}()"


# --- constraints that follow from other parameters


class _Dependent(Constraint):
    """Stands for a constraint that only an instance knows."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    @property
    def is_discrete(self):
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self):
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        """The same with facts filled in."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x):
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint):
    """Whether a constraint is `dependent`: known to an instance alone.

    Example:
        >>> is_dependent(real)
        False
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property whose value is a constraint, and which on the class is a dependent one.

    Example:
        >>> class Uniform:
        ...     @dependent_property(is_discrete=False, event_dim=0)
        ...     def support(self):
        ...         return interval(self.low, self.high)
        >>> Uniform.support.event_dim
        0
    """

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn):
        """Takes the function, where the facts came first."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


# --- made of other constraints


class _IndependentConstraint(Constraint):
    """Points made of several: all must satisfy the base constraint.

    Args:
        base_constraint: of the parts.
        reinterpreted_batch_ndims: how many dimensions are joined.
    """

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"independent(): expected a Constraint; got {base_constraint!r}")
        if not isinstance(reinterpreted_batch_ndims, int) or reinterpreted_batch_ndims < 0:
            raise AssertionError(
                "independent(): reinterpreted_batch_ndims must be an int >= 0; got "
                f"{reinterpreted_batch_ndims!r}"
            )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__()

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        result = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        if result.dim() < n:
            expected = self.base_constraint.event_dim + n
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        return result.reshape(result.shape[: result.dim() - n] + (-1,)).all(-1)

    def __repr__(self):
        name = type(self).__name__.lstrip("_")
        return f"{name}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """Points that satisfy the constraints of all components of a mixture.

    Args:
        base_constraint: that of the components, whose batch dimension is the rightmost.

    Example:
        >>> MixtureSameFamilyConstraint(positive).check(facula.tensor([1.0, -1.0]))
        tensor([ True, False])
    """

    def __init__(self, base_constraint):
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(
                f"MixtureSameFamilyConstraint(): expected a Constraint; got {base_constraint!r}"
            )
        self.base_constraint = base_constraint
        super().__init__()

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim

    def check(self, value):
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        batch = value.dim() - self.event_dim
        return result.reshape(result.shape[:batch] + (-1,)).all(-1)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Sequence(Constraint):
    """Constraints of the parts of a tensor along one dimension."""

    def __init__(self, cseq, dim):
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError(f"{self!r}: expected a sequence of constraints; got {cseq!r}")
        self.cseq = list(cseq)
        self.dim = dim
        super().__init__()

    @property
    def is_discrete(self):
        return any(c.is_discrete for c in self.cseq)

    def _check_dim(self, value):
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"{self!r}: there is no dimension {self.dim} in {value.shape}")


class _Cat(_Sequence):
    """Parts of given lengths, as joined by `facula.cat`.

    Args:
        cseq: the constraints.
        dim: the dimension of the parts.
        lengths: the size of each; None: one each.
    """

    def __init__(self, cseq, dim=0, lengths=None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"cat(): expected a length for each of {len(self.cseq)} constraints; got "
                f"{len(self.lengths)}"
            )

    @property
    def event_dim(self):
        return max(c.event_dim for c in self.cseq)

    def check(self, value):
        self._check_dim(value)
        checks, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths, strict=True):
            checks.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return facula.cat(checks, self.dim)


class _Stack(_Sequence):
    """Slices along one dimension, as joined by `facula.stack`.

    Args:
        cseq: the constraints.
        dim: the dimension of the slices.
    """

    def __init__(self, cseq, dim=0):
        super().__init__(cseq, dim)

    @property
    def event_dim(self):
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value):
        self._check_dim(value)
        slices = [value.select(self.dim, i) for i in range(value.size(self.dim))]
        checks = [c.check(v) for v, c in zip(slices, self.cseq, strict=True)]
        return facula.stack(checks, self.dim)


# --- numbers


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _Real(Constraint):
    """All real numbers; not NaN."""

    def check(self, value):
        return value == value  # noqa: PLR0124


class _Lower(Constraint):
    """Numbers with a lower bound."""

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound
        super().__init__()

    def __repr__(self):
        return f"{type(self).__name__.lstrip('_')}(lower_bound={self.lower_bound})"


class _Upper(Constraint):
    """Numbers with an upper bound."""

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound
        super().__init__()

    def __repr__(self):
        return f"{type(self).__name__.lstrip('_')}(upper_bound={self.upper_bound})"


class _Bounded(Constraint):
    """Numbers with both bounds."""

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        super().__init__()

    def __repr__(self):
        bounds = f"lower_bound={self.lower_bound}, upper_bound={self.upper_bound}"
        return f"{type(self).__name__.lstrip('_')}({bounds})"


class _GreaterThan(_Lower):
    """Numbers above the bound."""

    def check(self, value):
        return self.lower_bound < value


class _GreaterThanEq(_Lower):
    """The bound and numbers above."""

    def check(self, value):
        return self.lower_bound <= value


class _LessThan(_Upper):
    """Numbers below the bound."""

    def check(self, value):
        return value < self.upper_bound


class _Interval(_Bounded):
    """Numbers between the bounds, both included."""

    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    """Numbers from the lower bound up to and without the upper one."""

    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Bounded):
    """Integers between the bounds, both included."""

    is_discrete = True

    def check(self, value):
        inside = (self.lower_bound <= value) & (value <= self.upper_bound)
        return (value % 1 == 0) & inside


class _IntegerLessThan(_Upper):
    """Integers up to the bound."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Lower):
    """Integers from the bound on."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


# --- vectors


class _OneHot(Constraint):
    """Vectors with a single one among zeros."""

    is_discrete = True
    event_dim = 1

    def check(self, value):
        bits = (value == 0) | (value == 1)
        return bits.all(-1) & value.sum(-1).eq(1)


class _Simplex(Constraint):
    """Non-negative vectors with the sum one."""

    event_dim = 1

    def check(self, value):
        return facula.all(value >= 0, dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Non-negative integer vectors with a sum up to the bound."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, x):
        return (x >= 0).all(dim=-1) & (x.sum(dim=-1) <= self.upper_bound)


# --- matrices


class _LowerTriangular(Constraint):
    """Lower triangular square matrices."""

    event_dim = 2

    def check(self, value):
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal."""

    event_dim = 2

    def check(self, value):
        diagonal_is_positive = (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)
        return lower_triangular.check(value) & diagonal_is_positive


class _CorrCholesky(Constraint):
    """Cholesky factors of correlation matrices: rows have the length one."""

    event_dim = 2

    def check(self, value):
        tolerance = facula.finfo(value.dtype).eps * value.size(-1) * 10
        lengths = facula.linalg.vector_norm(value.detach(), dim=-1)
        return lower_cholesky.check(value) & (lengths - 1.0).abs().le(tolerance).all(-1)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value):
        square = value.shape[-2] == value.shape[-1]
        return facula.full(value.shape[:-2], square, dtype=facula.bool, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices, to six digits behind the point."""

    def check(self, value):
        is_square = super().check(value)
        if not is_square.all():
            return is_square
        return facula.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalue, but for rounding."""

    def check(self, value):
        is_symmetric = super().check(value)
        if not is_symmetric.all() or value.numel() == 0:
            return is_symmetric
        # With a few units in the last place of its size on the diagonal it has a Cholesky factor.
        info, n = facula.finfo(value.dtype), value.shape[-1]
        shift = (
            value.abs().amax((-2, -1)) * (n * info.eps) + info.tiny if n else value.sum((-2, -1))
        )
        one = facula.eye(n, dtype=value.dtype, device=value.device)
        return facula.linalg.cholesky_ex(value + shift[..., None, None] * one).info.eq(0)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices with positive eigenvalues: those that have a Cholesky factor."""

    def check(self, value):
        is_symmetric = super().check(value)
        if not is_symmetric.all():
            return is_symmetric
        return facula.linalg.cholesky_ex(value).info.eq(0)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
