"""Transforms from unconstrained numbers to constraints.

`biject_to(constraint)` is one-to-one, with a Jacobian: for Hamiltonian Monte Carlo and flows.
`transform_to(constraint)` may be cheaper and reach a point in several ways: for optimizers.
"""

from __future__ import annotations

from numbers import Number

from facula.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Which transform leads to the constraints of each class.

    Example:
        >>> transform_to(constraints.simplex)
        SoftmaxTransform()
    """

    def __init__(self):
        self._registry = {}
        super().__init__()

    def register(self, constraint, factory=None):
        """States what makes the transform for a class of constraints; also a decorator.

        Args:
            constraint: a subclass of Constraint, or an object of one.
            factory: takes a constraint and returns a Transform.

        Raises:
            TypeError: constraint is neither.

        Example:
            >>> registry = ConstraintRegistry()
            >>> make = registry.register(constraints.real, lambda c: transforms.identity_transform)
            >>> registry(constraints.real) is transforms.identity_transform
            True
        """
        if factory is None:
            return lambda f: self.register(constraint, f)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, but got "
                f"{constraint}"
            )
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint):
        """The transform for a constraint.

        Raises:
            NotImplementedError: none is registered for its class.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _register(*kinds):
    """Registers one factory, which takes the registry too, in both."""

    def decorator(factory):
        for registry in (biject_to, transform_to):
            for kind in kinds:
                registry.register(kind, lambda c, r=registry: factory(r, c))
        return factory

    return decorator


@_register(constraints.real)
def _real(registry, constraint):
    return transforms.identity_transform


@_register(constraints.independent)
def _independent(registry, constraint):
    base = registry(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@_register(constraints.greater_than, constraints.greater_than_eq)
def _above(registry, constraint):
    parts = [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    return transforms.ComposeTransform(parts)


@_register(constraints.less_than)
def _below(registry, constraint):
    parts = [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    return transforms.ComposeTransform(parts)


@_register(constraints.interval, constraints.half_open_interval)
def _interval(registry, constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, Number) and isinstance(high, Number) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    parts = [transforms.SigmoidTransform(), transforms.AffineTransform(loc=low, scale=high - low)]
    return transforms.ComposeTransform(parts)


@biject_to.register(constraints.simplex)
def _biject_to_simplex(constraint):
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint):
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _transform_to_lower_cholesky(constraint):
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _transform_to_positive_definite(constraint):
    return transforms.PositiveDefiniteTransform()


@_register(constraints.corr_cholesky)
def _corr_cholesky(registry, constraint):
    return transforms.CorrCholeskyTransform()


@_register(constraints.cat)
def _cat(registry, constraint):
    parts = [registry(c) for c in constraint.cseq]
    return transforms.CatTransform(parts, constraint.dim, constraint.lengths)


@_register(constraints.stack)
def _stack(registry, constraint):
    return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)
