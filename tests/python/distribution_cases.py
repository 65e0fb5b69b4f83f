"""Distributions to be tested: how each is made, with the classes of any library.

A case has the parameters, lists that become tensors or numbers, and a function that takes the
library's module of distributions and them.
"""

CASES = {}


def case(name=None, **parameters):
    """Adds the function that it decorates, under its own name or another."""

    def decorator(build):
        CASES[name or build.__name__] = (build, parameters)
        return build

    return decorator


def simple(class_name, suffix="", **parameters):
    """Adds a class that is called with the parameters."""
    case(class_name + suffix, **parameters)(lambda d, **tensors: getattr(d, class_name)(**tensors))


_PROBS = [0.1, 0.5, 0.9]
_LOGITS = [-2.0, 0.3, 1.5]
_LOC, _SCALE = [-1.0, 0.0, 2.5], [0.5, 1.0, 3.0]
_WEIGHTS = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]
_MATRIX = [[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 1.5]]
_FACTOR = [[1.4, 0.0, 0.0], [0.3, 0.9, 0.0], [-0.2, 0.4, 1.1]]

simple("Bernoulli", probs=_PROBS)
simple("Bernoulli", " logits", logits=_LOGITS)
simple("Beta", concentration1=[0.5, 1.0, 3.0], concentration0=[0.7, 2.0, 5.0])
simple("Binomial", total_count=[3.0, 3.0, 3.0], probs=_PROBS)
simple("Binomial", " logits", total_count=[1.0, 20.0, 200.0], logits=_LOGITS)
simple("Categorical", probs=_WEIGHTS)
simple("Categorical", " logits", logits=[[0.1, -1.0, 2.0], [0.0, 0.0, 0.5]])
simple("Cauchy", loc=_LOC, scale=_SCALE)
simple("Chi2", df=[0.7, 2.0, 9.0])
simple("ContinuousBernoulli", probs=[0.1, 0.4995, 0.9])
simple("ContinuousBernoulli", " logits", logits=_LOGITS)
simple("Dirichlet", concentration=[[0.5, 1.0, 3.0], [2.0, 2.0, 4.0], [0.5, 0.7, 0.2]])
simple("Exponential", rate=[0.2, 1.0, 4.0])
simple("FisherSnedecor", df1=[1.0, 4.0, 9.0], df2=[1.5, 3.0, 7.0])
simple("Gamma", concentration=[0.3, 1.0, 7.0], rate=[1.0, 2.0, 0.5])
simple(
    "GeneralizedPareto",
    loc=[-1.0, 0.0, 0.5, 0.0],
    scale=[0.5, 1.0, 2.0, 1.0],
    concentration=[0.2, 0.0, -0.5, 1.5],
)
simple("Geometric", probs=[0.1, 0.5, 1.0])
simple("Geometric", " logits", logits=_LOGITS)
simple("Gumbel", loc=_LOC, scale=_SCALE)
simple("HalfCauchy", scale=_SCALE)
simple("HalfNormal", scale=_SCALE)
simple("InverseGamma", concentration=[0.5, 1.5, 7.0], rate=[1.0, 2.0, 0.5])
simple("Kumaraswamy", concentration1=[0.5, 1.0, 3.0], concentration0=[0.7, 2.0, 5.0])
simple("Laplace", loc=_LOC, scale=_SCALE)
simple("LogNormal", loc=[-1.0, 0.0, 0.5], scale=[0.5, 1.0, 0.2])
simple("LogisticNormal", loc=[[0.5, -1.0], [0.0, 1.0]], scale=[[0.5, 1.0], [2.0, 0.1]])
simple(
    "LowRankMultivariateNormal",
    loc=[[0.0, 1.0, -1.0], [2.0, 0.0, 0.5]],
    cov_factor=[[1.0, 0.2], [0.5, -0.4], [-0.3, 2.0]],
    cov_diag=[0.3, 1.0, 0.5],
)
simple("MultivariateNormal", loc=[0.5, -1.0, 0.0], covariance_matrix=_MATRIX)
simple("MultivariateNormal", " precision", loc=[0.5, -1.0, 0.0], precision_matrix=_MATRIX)
simple("MultivariateNormal", " factor", loc=[[0.5, -1.0, 0.0], [1.0, 2.0, 3.0]], scale_tril=_FACTOR)
simple("NegativeBinomial", total_count=[1.0, 3.0, 10.0], probs=_PROBS)
simple("NegativeBinomial", " logits", total_count=[1.0, 3.0, 10.0], logits=_LOGITS)
simple("Normal", loc=_LOC, scale=_SCALE)
simple("OneHotCategorical", probs=_WEIGHTS)
simple("OneHotCategoricalStraightThrough", logits=[[0.1, -1.0, 2.0], [0.0, 0.0, 0.5]])
simple("Pareto", scale=[0.5, 1.0, 3.0], alpha=[0.8, 1.5, 4.0])
simple("Poisson", rate=[0.3, 4.0, 50.0])
simple("StudentT", df=[0.7, 1.5, 9.0], loc=_LOC, scale=_SCALE)
simple("Uniform", low=[-1.0, 0.0, 2.0], high=[1.0, 0.5, 7.0])
simple("VonMises", loc=[-1.0, 0.0, 2.5], concentration=[0.5, 3.0, 40.0])
simple("Weibull", scale=[0.5, 1.0, 3.0], concentration=[0.7, 1.0, 2.5])
simple("Wishart", df=[4.0, 7.0], covariance_matrix=_MATRIX)
simple("Wishart", " precision", df=[5.0], precision_matrix=_MATRIX)
simple("Wishart", " factor", df=[4.0], scale_tril=_FACTOR)


@case(concentration=[0.5, 1.0, 4.0])
def LKJCholesky(d, concentration):
    return d.LKJCholesky(3, concentration)


@case(probs=_WEIGHTS)
def Multinomial(d, probs):
    return d.Multinomial(5, probs=probs)


@case(temperature=0.7, probs=_PROBS)
def RelaxedBernoulli(d, temperature, probs):
    return d.RelaxedBernoulli(temperature, probs=probs)


@case(temperature=0.7, logits=_WEIGHTS)
def RelaxedOneHotCategorical(d, temperature, logits):
    return d.RelaxedOneHotCategorical(temperature, logits=logits)


@case(loc=[_LOC, _LOC], scale=_SCALE)
def Independent(d, loc, scale):
    return d.Independent(d.Normal(loc, scale), 1)


@case(weights=_WEIGHTS, loc=[_LOC, _LOC], scale=_SCALE)
def MixtureSameFamily(d, weights, loc, scale):
    return d.MixtureSameFamily(d.Categorical(weights), d.Normal(loc, scale))


@case("MixtureSameFamily of vectors", weights=_WEIGHTS[0], loc=[[0.0, 1.0], [2.0, 0.0], [4.0, 4.0]])
def mixture_of_vectors(d, weights, loc):
    return d.MixtureSameFamily(d.Categorical(weights), d.Independent(d.Normal(loc, 1.0), 1))


@case(loc=_LOC, scale=_SCALE)
def TransformedDistribution(d, loc, scale):
    return d.TransformedDistribution(
        d.Normal(loc, scale), [d.SigmoidTransform(), d.AffineTransform(1.0, -2.0)]
    )


@case("TransformedDistribution to matrices", loc=[0.0, 0.5, -0.5])
def transformed_to_matrices(d, loc):
    return d.TransformedDistribution(d.Normal(loc, 1.0), d.CorrCholeskyTransform())


def make(library, name, dtype="float64", grad=False):
    """The distribution of a case, and its parameters by name."""
    build, parameters = CASES[name]
    tensors = {
        k: library.tensor(v, dtype=getattr(library, dtype), requires_grad=grad)
        for k, v in parameters.items()
    }
    return build(library.distributions, **tensors), tensors
