"""Samples of distributions with 16 K parameters each, and the logarithms of their densities."""

from bench.kernels.common import In, K, Table

LINE, ROWS = In((16 * K,), low=0.5, high=4), In((1 * K, 16), low=0.5, high=4)

# Name: (inputs, the distribution, whether its log_prob is timed).
CLASSES = {
    "Normal": (LINE, lambda d, x: d.Normal(x, x)),
    "LogNormal": (LINE, lambda d, x: d.LogNormal(x, x)),
    "Uniform": (LINE, lambda d, x: d.Uniform(x, x + 1)),
    "Exponential": (LINE, lambda d, x: d.Exponential(x)),
    "Laplace": (LINE, lambda d, x: d.Laplace(x, x)),
    "Cauchy": (LINE, lambda d, x: d.Cauchy(x, x)),
    "Gumbel": (LINE, lambda d, x: d.Gumbel(x, x)),
    "Gamma": (LINE, lambda d, x: d.Gamma(x, x)),
    "Beta": (LINE, lambda d, x: d.Beta(x, x)),
    "StudentT": (LINE, lambda d, x: d.StudentT(x)),
    "VonMises": (LINE, lambda d, x: d.VonMises(x, x)),
    "Poisson": (LINE, lambda d, x: d.Poisson(x)),
    "Bernoulli": (LINE, lambda d, x: d.Bernoulli(x / 4)),
    "Binomial": (LINE, lambda d, x: d.Binomial(20, x / 4.01)),
    "Geometric": (LINE, lambda d, x: d.Geometric(x / 4.01)),
    "Categorical": (ROWS, lambda d, x: d.Categorical(x)),
    "Dirichlet": (ROWS, lambda d, x: d.Dirichlet(x)),
    "Multinomial": (ROWS, lambda d, x: d.Multinomial(20, x)),
}


def distributions():
    table = Table("distributions")
    for name, (shape, make) in CLASSES.items():

        def prepare(m, x, make=make):
            made = make(m.distributions, x)
            m.manual_seed(0)
            return [made, made.sample()]

        # Samples of Gamma, Binomial and their kin are not the same numbers in every module.
        table.add(f"{name} sample", [shape], lambda m, d, _: d.sample(), prepare=prepare,
                  checked=False)  # fmt: skip
        table.add(f"{name} log_prob", [shape], lambda m, d, x: d.log_prob(x), prepare=prepare,
                  checked=False)  # fmt: skip
    return table.cases
