"""Every distribution beside PyTorch's: samples from the same seed, values, gradients, texts."""

import warnings

import facula
import numpy as np
import pytest
import torch
from distribution_cases import CASES, make

SHAPES = [(), (3, 2)]
VALUES = ("mean", "mode", "variance", "stddev")
LAZY = ("probs", "logits", "scale_tril", "covariance_matrix", "precision_matrix")
CLASSES = {name.split()[0] for name in CASES}
# PyTorch's reparameterized gamma gradients are approximations to four digits.
GAMMA = {
    "Beta",
    "Chi2",
    "Dirichlet",
    "FisherSnedecor",
    "Gamma",
    "InverseGamma",
    "StudentT",
    "Wishart",
}
# Where PyTorch approximates a function, to this relative accuracy; 1e-9 elsewhere.
ACCURACY = {"VonMises": 1e-4, "Multinomial": 1e-6}
# (class, what): why PyTorch has no right answer.
BEYOND_TORCH = {
    ("Kumaraswamy", "mode"): "NaN wherever the second concentration is at least one",
    ("GeneralizedPareto", "log_prob"): "raises for float64",
    ("GeneralizedPareto", "cdf"): "raises for float64",
    ("Wishart", "gradient of rsample"): "raises, since a mask is changed in place",
}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of singular draws, which are redrawn
        yield


def outcome(function):
    """(result, class of the exception)."""
    try:
        return function(), None
    except (RuntimeError, NotImplementedError, ValueError) as error:
        return None, type(error).__name__


def array(x):
    return x.detach().numpy() if hasattr(x, "detach") else np.asarray(x)


def gradients(result, parameters):
    """The gradients of a weighted sum by the parameters, None where there is none."""
    if result is None or not result.requires_grad:
        return []
    weights = np.cos(np.arange(result.numel()) + 1.0).reshape(tuple(result.shape))
    library = facula if isinstance(result, facula.Tensor) else torch
    total = (result * library.from_numpy(weights)).sum()
    inputs = [p for p in parameters.values() if p.requires_grad]
    return list(library.autograd.grad(total, inputs, allow_unused=True, retain_graph=True))


def assert_same(ours, theirs, rtol=1e-9, atol=1e-11, what=""):
    assert (ours is None) == (theirs is None), f"{what}: {ours}; torch: {theirs}"
    if ours is None:
        return
    assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1], what
    np.testing.assert_allclose(array(ours), array(theirs), rtol, atol, err_msg=what)


class Pair:
    """One case in both libraries."""

    def __init__(self, name):
        self.kind = name.split()[0]
        self.ours, self.our_parameters = make(facula, name, grad=True)
        self.theirs, self.their_parameters = make(torch, name, grad=True)
        self.accuracy = ACCURACY.get(self.kind, 1e-9)

    def compare(self, what, of_ours, of_theirs, of_gradient=(1e-7, 1e-9)):
        """Both give the same result with the same gradients, or raise the same exception."""
        if (self.kind, what) in BEYOND_TORCH:
            return None
        (ours, our_error), (theirs, their_error) = outcome(of_ours), outcome(of_theirs)
        assert our_error == their_error, f"{what}: {our_error}; torch: {their_error}"
        if ours is None:
            return None
        assert_same(ours, theirs, self.accuracy, self.accuracy / 100, what)
        assert ours.requires_grad == theirs.requires_grad, what
        if (self.kind, f"gradient of {what}") in BEYOND_TORCH:
            return ours
        of_ours, our_error = outcome(lambda: gradients(ours, self.our_parameters))
        of_theirs, their_error = outcome(lambda: gradients(theirs, self.their_parameters))
        assert our_error == their_error, f"gradient of {what}: {our_error}; torch: {their_error}"
        rtol, atol = max(of_gradient[0], self.accuracy * 100), of_gradient[1]
        for i, (a, b) in enumerate(zip(of_ours or [], of_theirs or [], strict=True)):
            assert_same(a, b, rtol, atol, f"{what}: gradient by parameter {i}")
        return ours

    def sample(self, shape=(4,)):
        """The same values for both."""
        facula.manual_seed(3)
        ours = self.ours.sample(shape)
        return ours, torch.tensor(
            ours.tolist(), dtype=getattr(torch, str(ours.dtype).split(".")[-1])
        )


@pytest.fixture(params=sorted(CASES))
def pair(request):
    return Pair(request.param)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("method", ["sample", "rsample"])
def test_same_samples_from_the_same_seed(pair, method, shape):
    for library in (facula, torch):
        library.manual_seed(7)
    # Gradients by gamma numbers are approximations in PyTorch.
    of_gradient = (2e-3, 1e-3) if pair.kind in GAMMA else (1e-7, 1e-9)
    pair.compare(
        method,
        lambda: getattr(pair.ours, method)(shape),
        lambda: getattr(pair.theirs, method)(shape),
        of_gradient,
    )


@pytest.mark.parametrize("method", ["log_prob", "cdf"])
def test_same_values_at_samples(pair, method):
    ours, theirs = pair.sample()
    pair.compare(
        method,
        lambda: getattr(pair.ours, method)(ours),
        lambda: getattr(pair.theirs, method)(theirs),
    )


def test_same_quantiles(pair):
    shape = (4,) + (1,) * len(pair.ours.batch_shape)
    probabilities = [
        library.linspace(0.05, 0.95, 4, dtype=library.float64).reshape(shape)
        for library in (facula, torch)
    ]
    pair.compare(
        "icdf",
        lambda: pair.ours.icdf(probabilities[0]),
        lambda: pair.theirs.icdf(probabilities[1]),
    )


@pytest.mark.parametrize("name", VALUES)
def test_same_moments(pair, name):
    pair.compare(name, lambda: getattr(pair.ours, name), lambda: getattr(pair.theirs, name))


@pytest.mark.parametrize("name", ["entropy", "perplexity"])
def test_same_entropy(pair, name):
    pair.compare(name, getattr(pair.ours, name), getattr(pair.theirs, name))


@pytest.mark.parametrize("expand", [True, False])
def test_same_support_enumerated(pair, expand):
    pair.compare(
        "enumerate_support",
        lambda: pair.ours.enumerate_support(expand),
        lambda: pair.theirs.enumerate_support(expand),
    )


def facts(d):
    """What a distribution says of itself."""
    support, _ = outcome(lambda: (repr(d.support), d.support.event_dim, d.support.is_discrete))
    shapes = tuple(d.batch_shape), tuple(d.event_shape)
    return [
        repr(d),
        repr(d.arg_constraints),
        support,
        shapes,
        d.has_rsample,
        d.has_enumerate_support,
    ]


def test_same_texts_shapes_and_supports(pair):
    # A second time after lazy properties have been read, which then show.
    for _ in range(2):
        assert str(facts(pair.ours)) == str(facts(pair.theirs)).replace("torch", "facula")
        for d in (pair.ours, pair.theirs):
            for name in LAZY:
                getattr(d, name, None)


def test_expanded(pair):
    shape = (2, *pair.ours.batch_shape)
    ours, theirs = pair.ours.expand(shape), pair.theirs.expand(shape)
    assert str(facts(ours)) == str(facts(theirs)).replace("torch", "facula")
    for library in (facula, torch):
        library.manual_seed(11)
    pair.compare("sample", ours.sample, theirs.sample)
    x, y = pair.sample((2,))
    pair.compare("log_prob", lambda: ours.log_prob(x), lambda: theirs.log_prob(y))


def test_same_samples_in_float32():
    for name in sorted(CASES):
        results = []
        for library in (facula, torch):
            d, _ = make(library, name, dtype="float32")
            library.manual_seed(5)
            results.append(d.sample((5,)).numpy())
        np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-5, err_msg=name)


def test_the_package_has_the_same_names():
    assert set(facula.distributions.__all__) == set(torch.distributions.__all__)
    assert set(facula.distributions.constraints.__all__) == set(
        torch.distributions.constraints.__all__
    )
    missing = {
        f"{name}.{member}"
        for name in torch.distributions.__all__
        for member in dir(getattr(torch.distributions, name))
        if not member.startswith("_") and not hasattr(getattr(facula.distributions, name), member)
    }
    assert missing == set()


def test_every_distribution_has_a_case():
    kinds = [getattr(facula.distributions, name) for name in facula.distributions.__all__]
    base = facula.distributions.Distribution
    wanted = {k.__name__ for k in kinds if isinstance(k, type) and issubclass(k, base)}
    assert wanted - CLASSES == {"Distribution", "ExponentialFamily"}
