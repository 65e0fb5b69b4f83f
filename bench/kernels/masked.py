"""Masked reductions and masked tensors: half of the elements are there."""

from bench.kernels.common import In, K, Table

ROWS, MASK = In((1 * K, 256)), In((1 * K, 256), "bool")
REDUCTIONS = ("sum", "mean", "prod", "amax", "argmin", "var", "norm", "logsumexp", "median")
ALONG = ("softmax", "log_softmax", "normalize", "cumsum")


def called(name):
    """The masked function over the last dimension."""
    first = (2.0, 1) if name in ("norm", "normalize") else (1,)
    return lambda m, x, mask: getattr(m.masked, name)(x, *first, mask=mask)


def wrapped(m, x, mask):
    return [m.masked.masked_tensor(x, mask)]


CLASS = {
    "MaskedTensor add": lambda m, t: (t + t).get_data(),
    "MaskedTensor exp": lambda m, t: t.exp().get_data(),
    "MaskedTensor sum": lambda m, t: t.sum(1).get_data(),
    "MaskedTensor to_tensor": lambda m, t: t.to_tensor(0.0),
}


def masked():
    table = Table("masked")
    for name in (*REDUCTIONS, *ALONG):
        table.add(name, [ROWS, MASK], called(name))
    for name, function in CLASS.items():
        table.add(name, [ROWS, MASK], function, prepare=wrapped, checked=False)
    return table.cases
