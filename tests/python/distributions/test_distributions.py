"""Densities, samples, moments and divergences agree with each other."""

import warnings

import facula
import pytest
from distribution_cases import CASES, make

DRAWS = 40_000
# Moments that do not exist, or too heavy tails for an estimate.
HEAVY = ("Cauchy", "HalfCauchy", "StudentT", "Pareto", "FisherSnedecor", "InverseGamma")
HEAVY += ("GeneralizedPareto", "Wishart", "LogNormal")
NUMBERS = (
    "Beta Cauchy Chi2 ContinuousBernoulli Exponential Gamma GeneralizedPareto Gumbel HalfCauchy "
    "HalfNormal InverseGamma Kumaraswamy Laplace LogNormal Normal Pareto StudentT "
    "TransformedDistribution Uniform Weibull MixtureSameFamily FisherSnedecor"
).split()


@pytest.fixture(autouse=True)
def _quiet():
    facula.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of low degrees of freedom
        yield


def value_of(d, name):
    try:
        value = getattr(d, name)
        return value() if callable(value) else value
    except NotImplementedError:
        return None


@pytest.mark.parametrize("name", CASES)
def test_samples_have_the_shape_and_are_inside_of_the_support(name):
    d, _ = make(facula, name)
    for shape in ((), (5,), (2, 3)):
        x = d.sample(shape)
        assert x.shape == facula.Size(shape) + d.batch_shape + d.event_shape
        assert d.log_prob(x).shape == facula.Size(shape) + d.batch_shape
        assert d.support.check(x).all()
        assert not x.requires_grad


@pytest.mark.parametrize("name", [n for n in CASES if n.split()[0] not in HEAVY])
def test_moments_are_those_of_samples(name):
    d, _ = make(facula, name)
    mean, variance = value_of(d, "mean"), value_of(d, "variance")
    if mean is None or variance is None or mean.isnan().any() or name.startswith("VonMises"):
        return
    x = d.sample((DRAWS,))
    error = (variance / DRAWS).sqrt()
    assert ((x.mean(0) - mean).abs() <= 5 * error + 1e-9).all()
    # The variance of an estimated variance, from the fourth moment.
    square = (x - mean) ** 2
    assert ((square.mean(0) - variance).abs() <= 6 * square.std(0) / DRAWS**0.5 + 1e-9).all()


@pytest.mark.parametrize("name", CASES)
def test_entropy_is_the_mean_of_the_density(name):
    d, _ = make(facula, name)
    entropy = value_of(d, "entropy")
    if entropy is None:
        return
    density = d.log_prob(d.sample((DRAWS,)))
    error = density.std(0) / DRAWS**0.5
    assert ((density.mean(0) + entropy).abs() <= 5 * error + 1e-6).all()
    assert facula.allclose(d.perplexity(), entropy.exp())


@pytest.mark.parametrize("name", [n for n in CASES if n.split()[0] in NUMBERS])
def test_densities_integrate_to_the_distribution_function(name):
    """Over the middle 98 % by Simpson's rule, with ends from samples."""
    d, _ = make(facula, name)
    if d.event_shape:
        return
    x = d.sample((DRAWS,)).sort(0)[0]
    low, high = x[DRAWS // 100], x[-DRAWS // 100]
    steps = 4000
    grid = facula.linspace(0, 1, steps + 1, dtype=facula.float64)
    column = grid.reshape(-1, *[1] * low.dim())
    points = low + (high - low) * column**6  # densest where the density may be high
    weights = facula.full((steps + 1,), 2.0, dtype=facula.float64)
    weights[1::2] = 4.0
    weights[0] = weights[-1] = 1.0
    density = d.log_prob(points).exp() * 6 * column**5
    mass = (density * weights.reshape(-1, *[1] * low.dim())).sum(0) * (high - low) / (3 * steps)
    assert ((mass - 0.98).abs() < 0.01).all()
    cdf = lambda v: d.cdf(v)  # noqa: E731
    try:
        assert facula.allclose(cdf(high) - cdf(low), mass, atol=1e-3)
    except NotImplementedError:
        return
    try:
        assert facula.allclose(d.icdf(cdf(low)), low, rtol=1e-4, atol=1e-6)
    except NotImplementedError:
        return


@pytest.mark.parametrize("name", [n for n in CASES if make(facula, n)[0].has_enumerate_support])
def test_probabilities_sum_to_one(name):
    d, _ = make(facula, name)
    try:
        values = d.enumerate_support()
    except NotImplementedError:
        return
    assert values.shape[1:] == d.batch_shape + d.event_shape
    total = d.log_prob(values).exp().sum(0)
    assert facula.allclose(total, facula.ones_like(total))


@pytest.mark.parametrize("name", ["Poisson", "Geometric", "Geometric logits", "NegativeBinomial"])
def test_probabilities_of_counts_sum_to_one(name):
    d, _ = make(facula, name)
    counts = facula.arange(2000.0, dtype=facula.float64).reshape(-1, 1)
    total = d.log_prob(counts).exp().sum(0)
    assert facula.allclose(total, facula.ones_like(total))


@pytest.mark.parametrize("name", [n for n in CASES if n.split()[0] not in HEAVY])
def test_gradients_of_samples_are_those_of_the_mean(name):
    """The mean of d x / d parameter is the derivative of the mean, where both are known."""
    d, parameters = make(facula, name, grad=True)
    # Near 1/2 draws of a continuous Bernoulli are uniform numbers, without gradient.
    without = name.startswith("OneHot") or name == "ContinuousBernoulli"
    if not d.has_rsample or without or value_of(d, "mean") is None or not d.mean.requires_grad:
        return
    x = d.rsample((DRAWS,))
    inputs = {"inputs": list(parameters.values()), "allow_unused": True, "retain_graph": True}
    wanted = facula.autograd.grad(d.mean.sum(), **inputs)
    got = facula.autograd.grad(x.mean(0).sum(), **inputs)
    for a, b in zip(got, wanted, strict=True):
        b = facula.zeros_like(a) if b is None else b
        assert facula.allclose(a, b, rtol=0.1, atol=0.05)


PAIRS = [
    ("Beta", "ContinuousBernoulli"),
    ("Beta", "Exponential"),
    ("Beta", "Gamma"),
    ("ContinuousBernoulli", "Exponential"),
    ("Exponential", "Gamma"),
    ("Exponential", "Gumbel"),
    ("Gamma", "Exponential"),
    ("Gamma", "Gumbel"),
    ("Gumbel", "Normal"),
    ("Laplace", "Normal"),
    ("LowRankMultivariateNormal", "MultivariateNormal factor"),
    ("MultivariateNormal factor", "LowRankMultivariateNormal"),
    ("Normal", "Gumbel"),
    ("Normal", "Laplace"),
    ("Uniform", "Gumbel"),
    ("Uniform", "Normal"),
    ("Bernoulli", "Poisson"),
]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_divergences_are_those_of_samples(pair):
    (p, _), (q, _) = (make(facula, name) for name in pair)
    divergence = facula.distributions.kl_divergence(p, q)
    x = p.sample((DRAWS,))
    ratio = p.log_prob(x) - q.log_prob(x)
    error = ratio.std(0) / DRAWS**0.5
    assert ((ratio.mean(0) - divergence).abs() <= 6 * error + 1e-6).all()


@pytest.mark.parametrize("name", [n for n in CASES if n != "Geometric"])  # it has a certain one
def test_divergence_from_itself_is_zero(name):
    p, _ = make(facula, name)
    try:
        divergence = facula.distributions.kl_divergence(p, p)
    except NotImplementedError:
        return
    if name.startswith("ContinuousBernoulli"):
        divergence = divergence.nan_to_num()
    assert facula.allclose(divergence, facula.zeros_like(divergence), atol=1e-9)


def test_low_rank_divergences_are_those_of_full_matrices():
    p, _ = make(facula, "LowRankMultivariateNormal")
    q, _ = make(facula, "MultivariateNormal")
    d = facula.distributions
    full = d.MultivariateNormal(p.loc, p.covariance_matrix)
    assert facula.allclose(d.kl_divergence(p, q), d.kl_divergence(full, q))
    assert facula.allclose(d.kl_divergence(q, p), d.kl_divergence(q, full))
    assert facula.allclose(p.precision_matrix, full.precision_matrix)
    assert facula.allclose(p.scale_tril @ p.scale_tril.mT, p.covariance_matrix)
    x = full.sample((3,))
    assert facula.allclose(p.log_prob(x), full.log_prob(x))


def test_kumaraswamy_mode_is_the_highest_point():
    d = facula.distributions.Kumaraswamy(facula.tensor([2.0, 3.0]), facula.tensor([1.5, 5.0]))
    points = facula.linspace(0.001, 0.999, 999).reshape(-1, 1)
    best = points[d.log_prob(points).argmax(0), 0]
    assert facula.allclose(d.mode, best, atol=1e-3)


def test_a_divergence_is_stated_for_a_mixin_of_distributions():
    class Scored:
        pass

    class ScoredNormal(Scored, facula.distributions.Normal):
        pass

    @facula.distributions.register_kl(ScoredNormal, Scored)
    def divergence(p, q):
        return facula.tensor(7.0)

    a = ScoredNormal(0.0, 1.0)
    assert facula.distributions.kl_divergence(a, a).item() == 7.0
    with pytest.raises(TypeError):
        facula.distributions.register_kl(a, facula.distributions.Normal)
