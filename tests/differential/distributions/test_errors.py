"""What distributions refuse: the same class of exception as PyTorch's, and much the same text."""

import facula
import pytest
import torch


def _normal(t):
    return t.distributions.Normal(0.0, 1.0)


def _vector(t):
    return t.distributions.MultivariateNormal(t.zeros(2), t.eye(2))


class _Call:
    """Calls of the module of distributions: `D.Normal(0.0, -1.0)` as a function of the library."""

    def __getattr__(self, name):
        def prepare(*args, **kwargs):
            def call(t):
                make = [a(t) if callable(a) else a for a in args]
                keywords = {k: v(t) if callable(v) else v for k, v in kwargs.items()}
                return getattr(t.distributions, name)(*make, **keywords)

            return call

        return prepare


D = _Call()


def ones(*shape):
    return lambda t: t.ones(*shape)


def numbers(*values):
    return lambda t: t.tensor(values)


CALLS = {
    "scale below zero": (D.Normal(0.0, -1.0), "Expected parameter scale .* GreaterThan"),
    "neither number nor tensor": (D.Normal("a", 1.0), ""),
    "value that is no tensor": (lambda t: _normal(t).log_prob(1.0), "must be a Tensor"),
    "value of another event": (lambda t: _vector(t).log_prob(t.zeros(3)), "match event_shape"),
    "value of another batch": (
        lambda t: t.distributions.Normal(t.zeros(3), 1.0).log_prob(t.zeros(2)),
        "not broadcastable",
    ),
    "value outside of the support": (
        lambda t: t.distributions.Beta(1.0, 1.0).log_prob(t.tensor(2.0)),
        "within the support",
    ),
    "negative weights": (D.Categorical(numbers(-1.0, 2.0)), "Simplex"),
    "weights without dimension": (D.Categorical(lambda t: t.tensor(1.0)), "one-dimensional"),
    "neither probs nor logits": (D.Bernoulli(), "not both"),
    "both probs and logits": (D.Bernoulli(0.5, 0.5), "not both"),
    "empty interval": (D.Uniform(1.0, 0.0), "LessThan"),
    "no cdf": (lambda t: _vector(t).cdf(t.zeros(2)), ""),
    "not enumerable": (lambda t: _normal(t).enumerate_support(), ""),
    "too few batch dimensions": (D.Independent(_normal, 1), "reinterpreted_batch_ndims"),
    "no transform": (D.TransformedDistribution(_normal, 3), "Transform or list"),
    "no transform in a list": (D.TransformedDistribution(_normal, [3]), "list of Transforms"),
    "too few dimensions": (
        D.TransformedDistribution(_normal, D.StickBreakingTransform()),
        "size at least 1",
    ),
    "impossible success": (D.Geometric(0.0), "positive"),
    "counts that differ": (D.Multinomial(numbers(2), ones(2)), "inhomogeneous"),
    "no matrix": (D.MultivariateNormal(ones(2)), "Exactly one"),
    "one row": (D.LKJCholesky(1), "greater than or equal to 2"),
    "few degrees of freedom": (D.Wishart(lambda t: t.tensor(1.0), lambda t: t.eye(3)), "df"),
    "mixture of no categories": (D.MixtureSameFamily(_normal, _normal), "Categorical"),
    "concentration without dimension": (D.Dirichlet(lambda t: t.tensor(1.0)), "one-dimensional"),
    "factor of other size": (D.LowRankMultivariateNormal(ones(2), ones(3, 1), ones(2)), "2 x m"),
    "cache of two": (D.ExpTransform(2), "cache_size"),
    "reshape to another size": (D.ReshapeTransform((2,), (3,)), "different numbers of elements"),
    "negative count": (D.Binomial(-1, lambda t: t.tensor(0.5)), "IntegerGreaterThan"),
    "entropy of counts that differ": (
        lambda t: t.distributions.Binomial(t.tensor([1.0, 2.0]), t.tensor(0.5)).entropy(),
        "Inhomogeneous",
    ),
    "rate below zero": (D.Poisson(-1.0), "GreaterThanEq"),
    "covariance that is not positive definite": (
        D.MultivariateNormal(ones(2), lambda t: -t.eye(2)),
        "PositiveDefinite",
    ),
    "the same unchecked": (
        D.MultivariateNormal(ones(2), lambda t: -t.eye(2), validate_args=False),
        "order 1",
    ),
    "default that is no bool": (
        lambda t: t.distributions.Distribution.set_default_validate_args(3),
        "",
    ),
    "constraint known to nobody": (
        lambda t: t.distributions.constraints.dependent.check(1),
        "Cannot determine",
    ),
    "constraint made of a number": (
        lambda t: t.distributions.constraints.independent(3, 1),
        "",
    ),
    "unregistered constraint": (
        lambda t: t.distributions.biject_to(t.distributions.constraints.boolean),
        "Cannot transform _Boolean",
    ),
    "registered number": (
        lambda t: t.distributions.biject_to.register(3, id),
        "Constraint subclass or instance",
    ),
    "vector that fills no triangle": (
        lambda t: t.distributions.CorrCholeskyTransform().forward_shape((2,)),
        "lower-diagonal",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_same_errors(name):
    call, text = CALLS[name]
    with pytest.raises(Exception, match=text or None) as theirs:
        call(torch)
    with pytest.raises(Exception, match=text or None) as ours:
        call(facula)
    assert ours.type.__name__ == theirs.type.__name__


def test_validation_can_be_turned_off():
    for library in (facula, torch):
        d = library.distributions.Normal(0.0, -1.0, validate_args=False)
        assert library.isnan(d.log_prob(library.tensor(0.0)))


def test_a_subclass_must_expand_itself():
    for library in (facula, torch):

        class Standard(library.distributions.Normal):
            def __init__(self):
                super().__init__(0.0, 1.0)

        with pytest.raises(NotImplementedError, match="custom .expand"):
            Standard().expand((2,))


def test_sample_n_is_deprecated():
    for library in (facula, torch):
        with pytest.warns(FutureWarning):
            assert library.distributions.Normal(0.0, 1.0).sample_n(3).shape == (3,)
