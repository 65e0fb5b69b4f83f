"""Random numbers."""

from bench.kernels.common import In, K, Table


def random():
    table = Table("random")
    functions = {
        "rand": lambda m, x: m.rand(1 * K, 256),
        "randn": lambda m, x: m.randn(1 * K, 256),
        "randn f64": lambda m, x: m.randn(256, 256, dtype=m.float64),
        "randint": lambda m, x: m.randint(0, 100, (1 * K, 256)),
        "randperm": lambda m, x: m.randperm(64 * K),
        "bernoulli": lambda m, x: m.bernoulli(x.abs() * 0.5),
        "dropout": lambda m, x: m.nn.functional.dropout(x, 0.1),
        "exponential_": lambda m, x: x.exponential_(),
        "multinomial": lambda m, x: m.multinomial(x[:64].abs(), 4),
    }
    for name, function in functions.items():
        table.add(name, [In((1 * K, 256))], function, checked=False)
    return table.cases
