"""Transforms and constraints to be tested, with the classes of any library.

`TRANSFORMS[name]` has a function that makes the transform of a module of distributions and of a
function from lists to tensors, and an input. `CONSTRAINTS[name]` has one that makes the constraint
and values, of which some are outside.
"""

_VECTOR = [[-1.0, 0.3, 2.0], [0.0, -0.5, 1.5]]
_POSITIVE = [[0.2, 1.0, 3.5], [0.7, 0.1, 2.0]]
_MATRIX = [[0.5, -1.0, 0.2], [0.3, -0.4, 1.0], [2.0, 0.1, 0.7]]

TRANSFORMS = {
    "abs": (lambda d, t: d.AbsTransform(), _POSITIVE),
    "affine": (lambda d, t: d.AffineTransform(1.0, -2.5), _VECTOR),
    "affine of tensors": (lambda d, t: d.AffineTransform(t([1.0, 0.0, 2.0]), t(0.5)), _VECTOR),
    "affine of vectors": (
        lambda d, t: d.AffineTransform(t([1.0, 0.0, 2.0]), t([0.5, -2.0, 1.0]), event_dim=1),
        _VECTOR,
    ),
    "cat": (
        lambda d, t: d.CatTransform(
            [d.ExpTransform(), d.AffineTransform(1.0, 2.0)], dim=-1, lengths=[1, 2]
        ),
        _VECTOR,
    ),
    "compose": (
        lambda d, t: d.ComposeTransform([d.AffineTransform(0.0, 0.5), d.SigmoidTransform()]),
        _VECTOR,
    ),
    "compose of elements and vectors": (
        lambda d, t: d.ComposeTransform(
            [d.AffineTransform(0.0, 0.5), d.StickBreakingTransform(), d.ExpTransform()]
        ),
        _VECTOR,
    ),
    "compose of nothing": (lambda d, t: d.ComposeTransform([]), _VECTOR),
    "correlation": (lambda d, t: d.CorrCholeskyTransform(), _VECTOR),
    "cumulative": (
        lambda d, t: d.CumulativeDistributionTransform(d.Normal(t(0.5), t(2.0))),
        _VECTOR,
    ),
    "exp": (lambda d, t: d.ExpTransform(), _VECTOR),
    "independent": (lambda d, t: d.IndependentTransform(d.ExpTransform(), 1), _VECTOR),
    "inverse": (lambda d, t: d.ExpTransform().inv, _POSITIVE),
    "lower cholesky": (lambda d, t: d.LowerCholeskyTransform(), _MATRIX),
    "positive definite": (lambda d, t: d.PositiveDefiniteTransform(), _MATRIX),
    "power": (lambda d, t: d.PowerTransform(t([2.0, -1.0, 0.5])), _POSITIVE),
    "reshape": (lambda d, t: d.ReshapeTransform((3,), (1, 3)), _VECTOR),
    "sigmoid": (lambda d, t: d.SigmoidTransform(), _VECTOR),
    "softmax": (lambda d, t: d.SoftmaxTransform(), _VECTOR),
    "softplus": (lambda d, t: d.SoftplusTransform(), _VECTOR),
    "stack": (
        lambda d, t: d.StackTransform(
            [d.ExpTransform(), d.TanhTransform(), d.SigmoidTransform()], dim=-1
        ),
        _VECTOR,
    ),
    "stick breaking": (lambda d, t: d.StickBreakingTransform(), _VECTOR),
    "tanh": (lambda d, t: d.TanhTransform(), _VECTOR),
}

_NUMBERS = [-1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0, float("nan"), float("inf")]
_POINTS = [[0.5, 0.5], [0.2, 0.9], [1.0, 0.0], [-0.5, 1.5], [0.0, 0.0], [2.0, 1.0]]
_MATRICES = [
    [[1.0, 0.0], [0.0, 1.0]],
    [[1.0, 0.0], [0.6, 0.8]],
    [[2.0, 1.0], [1.0, 2.0]],
    [[1.0, 2.0], [2.0, 1.0]],
    [[1.0, 1.0], [1.0, 1.0]],
    [[-1.0, 0.0], [0.5, 1.0]],
]
_WIDE = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]

CONSTRAINTS = {
    "boolean": (lambda c, t: c.boolean, _NUMBERS),
    "cat": (lambda c, t: c.cat([c.positive, c.unit_interval], dim=-1), _POINTS),
    "cat of lengths": (
        lambda c, t: c.cat([c.positive, c.boolean], dim=0, lengths=[4, 6]),
        _NUMBERS,
    ),
    "corr_cholesky": (lambda c, t: c.corr_cholesky, _MATRICES),
    "greater_than": (lambda c, t: c.greater_than(0.5), _NUMBERS),
    "greater_than_eq": (lambda c, t: c.greater_than_eq(0.5), _NUMBERS),
    "half_open_interval": (lambda c, t: c.half_open_interval(0.0, 2.0), _NUMBERS),
    "independent": (lambda c, t: c.independent(c.positive, 1), _POINTS),
    "integer_interval": (lambda c, t: c.integer_interval(0, 2), _NUMBERS),
    "interval": (lambda c, t: c.interval(t(0.0), t(2.0)), _NUMBERS),
    "less_than": (lambda c, t: c.less_than(2), _NUMBERS),
    "lower_cholesky": (lambda c, t: c.lower_cholesky, _MATRICES),
    "lower_triangular": (lambda c, t: c.lower_triangular, _MATRICES),
    "mixture": (
        lambda c, t: c.MixtureSameFamilyConstraint(c.interval(t([0.0, 1.0]), 2.0)),
        _NUMBERS,
    ),
    "mixture of vectors": (lambda c, t: c.MixtureSameFamilyConstraint(c.simplex), _POINTS),
    "multinomial": (lambda c, t: c.multinomial(2), _POINTS),
    "nonnegative": (lambda c, t: c.nonnegative, _NUMBERS),
    "nonnegative_integer": (lambda c, t: c.nonnegative_integer, _NUMBERS),
    "one_hot": (lambda c, t: c.one_hot, _POINTS),
    "positive": (lambda c, t: c.positive, _NUMBERS),
    "positive_definite": (lambda c, t: c.positive_definite, _MATRICES[:1] + _MATRICES[2:4]),
    "positive_definite of others": (lambda c, t: c.positive_definite, _MATRICES),
    "positive_integer": (lambda c, t: c.positive_integer, _NUMBERS),
    "positive_semidefinite": (
        lambda c, t: c.positive_semidefinite,
        [*_MATRICES[2:5], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, -1e-6]]],
    ),
    "real": (lambda c, t: c.real, _NUMBERS),
    "real_vector": (lambda c, t: c.real_vector, _POINTS),
    "simplex": (lambda c, t: c.simplex, _POINTS),
    "square": (lambda c, t: c.square, _MATRICES),
    "square of others": (lambda c, t: c.square, _WIDE),
    "stack": (lambda c, t: c.stack([c.positive, c.boolean], dim=-1), _POINTS),
    "symmetric": (lambda c, t: c.symmetric, _MATRICES),
    "symmetric of others": (lambda c, t: c.symmetric, _WIDE),
    "unit_interval": (lambda c, t: c.unit_interval, _NUMBERS),
}


def tensors(library):
    """A function from lists and numbers to tensors of doubles."""
    return lambda values: library.tensor(values, dtype=library.float64)


def make_transform(library, name, grad=False):
    """The transform of a case, and its input."""
    make, values = TRANSFORMS[name]
    x = tensors(library)(values)
    return make(library.distributions, tensors(library)), x.requires_grad_() if grad else x


def make_constraint(library, name):
    """The constraint of a case, and values."""
    make, values = CONSTRAINTS[name]
    return make(library.distributions.constraints, tensors(library)), tensors(library)(values)
