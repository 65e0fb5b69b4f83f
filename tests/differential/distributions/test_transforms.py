"""Transforms and constraints beside PyTorch's."""

import facula
import numpy as np
import pytest
import torch
from transform_cases import CONSTRAINTS, TRANSFORMS, make_constraint, make_transform

LIBRARIES = (facula, torch)


def either(function):
    """A value, or the class of the exception."""
    try:
        return function()
    except (NotImplementedError, ValueError, RuntimeError, AttributeError) as error:
        return type(error).__name__


def describe(value):
    """A text that two libraries share: arrays rounded, names of the library left out."""
    if hasattr(value, "detach"):
        values = np.round(value.detach().double().numpy(), 9) + 0.0  # no negative zero
        return values.tolist(), str(value.dtype).split(".")[-1]
    return repr(value).replace("torch", "facula")


@pytest.mark.parametrize("name", TRANSFORMS)
def test_same_transforms(name):
    outcomes = []
    for library in LIBRARIES:
        t, x = make_transform(library, name, grad=True)
        y = t(x)
        jacobian = either(lambda t=t, x=x, y=y: t.log_abs_det_jacobian(x, y))
        total = y.cos().sum() + (jacobian.sum() if hasattr(jacobian, "sum") else 0)
        (gradient,) = library.autograd.grad(total, x, retain_graph=True)
        facts = [t, t.inv, t.inv.inv is t, t.bijective, either(lambda t=t: t.sign)]
        facts += [t.domain, t.codomain, either(lambda t=t: t.event_dim)]
        facts += [tuple(t.forward_shape(x.shape)), tuple(t.inverse_shape(y.shape))]
        facts += [t == make_transform(library, name)[0], t == t.inv, t.inv == t.inv]
        facts += [type(t.with_cache(1)).__name__ if name != "inverse" else ""]
        values = [y, t.inv(y), jacobian, gradient, either(lambda t=t, y=y: t.inv(t(t.inv(y))))]
        outcomes.append([describe(v) for v in facts + values])
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_same_constraints(name):
    outcomes = []
    for library in LIBRARIES:
        constraint, values = make_constraint(library, name)
        checked = either(lambda c=constraint, v=values: c.check(v))
        facts = [constraint, constraint.is_discrete, constraint.event_dim, checked]
        d = library.distributions
        facts += [either(lambda c=constraint, d=d: d.biject_to(c))]
        facts += [either(lambda c=constraint, d=d: d.transform_to(c))]
        outcomes.append([describe(v) for v in facts])
    assert outcomes[0] == outcomes[1]


def test_caches_give_back_the_very_input():
    for library in LIBRARIES:
        t = library.distributions.TanhTransform(cache_size=1)
        x = library.full((), 20.0)
        assert t.inv(t(x)) is x
        t = library.distributions.ComposeTransform(
            [library.distributions.TanhTransform(), library.distributions.ExpTransform()]
        ).with_cache(1)
        assert t.inv(t(x)) is x


def test_dependent_properties():
    for library in LIBRARIES:
        c = library.distributions.constraints

        class Owner:
            @c.dependent_property(is_discrete=True, event_dim=2)
            def support(self):
                return "own"

            @c.dependent_property
            def other(self):
                return "other"

        assert Owner().support == "own" and Owner().other == "other"
        assert c.is_dependent(Owner.support) and Owner.support.event_dim == 2
        assert Owner.support.is_discrete
        with pytest.raises(NotImplementedError):
            _ = Owner.other.event_dim
        assert c.dependent(event_dim=1).event_dim == 1
        assert not c.is_dependent(c.real)


def test_helpers():
    for library in LIBRARIES:
        u = library.distributions.utils
        matrix = library.arange(9.0).reshape(3, 3)
        for diag in (-2, -1, 0, 1, 2):
            vector = u.tril_matrix_to_vec(matrix, diag)
            assert library.equal(vector, matrix[library.ones(3, 3).tril(diag).bool()])
        for diag in (-1, 0):
            vector = u.tril_matrix_to_vec(matrix, diag)
            assert library.equal(u.vec_to_tril_matrix(vector, diag), matrix.tril(diag))
        with pytest.raises(ValueError, match="diag"):
            u.tril_matrix_to_vec(matrix, 3)
        a, b = u.broadcast_all(1, library.zeros(2, dtype=library.float64))
        assert a.dtype == library.float64 and a.shape == b.shape
