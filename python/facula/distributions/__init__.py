"""Probability distributions, transforms and constraints.

All are imported with the package: programs look through its `__dict__` for them.
"""

from __future__ import annotations

_CLASSES = {
    "bernoulli": "Bernoulli",
    "beta": "Beta",
    "binomial": "Binomial",
    "categorical": "Categorical",
    "cauchy": "Cauchy",
    "chi2": "Chi2",
    "constraint_registry": "biject_to transform_to",
    "continuous_bernoulli": "ContinuousBernoulli",
    "dirichlet": "Dirichlet",
    "distribution": "Distribution",
    "exp_family": "ExponentialFamily",
    "exponential": "Exponential",
    "fishersnedecor": "FisherSnedecor",
    "gamma": "Gamma",
    "generalized_pareto": "GeneralizedPareto",
    "geometric": "Geometric",
    "gumbel": "Gumbel",
    "half_cauchy": "HalfCauchy",
    "half_normal": "HalfNormal",
    "independent": "Independent",
    "inverse_gamma": "InverseGamma",
    "kl": "kl_divergence register_kl",
    "kumaraswamy": "Kumaraswamy",
    "laplace": "Laplace",
    "lkj_cholesky": "LKJCholesky",
    "log_normal": "LogNormal",
    "logistic_normal": "LogisticNormal",
    "lowrank_multivariate_normal": "LowRankMultivariateNormal",
    "mixture_same_family": "MixtureSameFamily",
    "multinomial": "Multinomial",
    "multivariate_normal": "MultivariateNormal",
    "negative_binomial": "NegativeBinomial",
    "normal": "Normal",
    "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough",
    "pareto": "Pareto",
    "poisson": "Poisson",
    "relaxed_bernoulli": "RelaxedBernoulli",
    "relaxed_categorical": "RelaxedOneHotCategorical",
    "studentT": "StudentT",
    "transformed_distribution": "TransformedDistribution",
    "transforms": "AbsTransform AffineTransform CatTransform ComposeTransform "
    "CorrCholeskyTransform CumulativeDistributionTransform ExpTransform IndependentTransform "
    "LowerCholeskyTransform PositiveDefiniteTransform PowerTransform ReshapeTransform "
    "SigmoidTransform SoftmaxTransform SoftplusTransform StackTransform StickBreakingTransform "
    "TanhTransform Transform identity_transform",
    "uniform": "Uniform",
    "von_mises": "VonMises",
    "weibull": "Weibull",
    "wishart": "Wishart",
}
_MODULES = {*_CLASSES, "constraints", "utils"}
__all__ = [name for names in _CLASSES.values() for name in names.split()]  # noqa: PLE0605


def _import_all():
    from importlib import import_module

    for name in sorted(_MODULES):
        module = globals()[name] = import_module(f"{__name__}.{name}")
        names = _CLASSES.get(name, "").split()
        globals().update({name: getattr(module, name) for name in names})


_import_all()
