"""vmap of every operator against a loop over samples, nests of transforms, custom Functions."""

import warnings

import facula
import pytest
from facula import func
from samples import load_ops
from samples.checks import cases, is_tensor, tensors_of
from samples.common import find, make_arguments, seed_of, split_marked

MOST_ELEMENTS = 600
# In-place operators change the samples that the loop reads again.
WRITING = {row["name"] for row in facula._C._operator_table() if "!" in row["schema"]}
OPS = [
    op
    for op in load_ops()
    if not op.nondeterministic and not op.short_name.endswith("_") and op.short_name not in WRITING
]
# What vmap cannot do for any function: results whose shape depends on the data, numbers in Python.
REFUSALS = (
    "depends on the data",
    "gives a number",
    "gives a bool",
    "different lengths",
    "Sizes of tensors must match",
    "would write a batch",
    "randomness",
)


def _numbers(result):
    return tuple(r for r in tensors_of(result) if is_tensor(r))


def _two_samples(op, index, dtype):
    """(function of the differentiable tensors, those of two samples); None where there are none."""
    sample = op.samples[index]
    made = [make_arguments(facula, sample, dtype, seed_of(op, index) + 1000 * k) for k in range(2)]
    parts = [split_marked(sample, *m, dtype) for m in made]
    inputs, call = parts[0]
    if not inputs or sum(t.numel() for t in inputs) > MOST_ELEMENTS:
        return None
    return (lambda *ts: _numbers(call(find(facula, op.name), ts))), [p[0] for p in parts]


def _same(a, b, what):
    assert (a.shape, a.dtype) == (b.shape, b.dtype), what
    assert facula.allclose(a, b, rtol=1e-6, atol=1e-8, equal_nan=True), what


@pytest.mark.parametrize(("op", "dtype"), **cases(OPS, {"float64"}))
def test_vmap_is_a_loop(op, dtype):
    for index, sample in op.numbered_samples(dtype):
        prepared = _two_samples(op, index, dtype)
        if not prepared:
            continue
        function, both = prepared
        expected = [function(*inputs) for inputs in both]
        if any(a.shape != b.shape for a, b in zip(*expected, strict=True)):
            continue
        stacked = [facula.stack(column) for column in zip(*both, strict=True)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                got = func.vmap(function)(*stacked) if expected[0] else ()
        except RuntimeError as error:
            if any(text in str(error) for text in REFUSALS):
                continue
            raise AssertionError(f"{sample}: {error}") from error
        for place, result in enumerate(got):
            wanted = facula.stack([e[place] for e in expected])
            _same(result, wanted, sample)
        # One argument alone batched: the others are the same for every sample.
        for at in range(len(stacked) if len(stacked) > 1 else 0):
            dims = tuple(0 if i == at else None for i in range(len(stacked)))
            mixed = [s if i == at else both[0][i] for i, s in enumerate(stacked)]
            loop = [
                function(*(both[k][i] if i == at else both[0][i] for i in range(len(stacked))))
                for k in range(2)
            ]
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    got = func.vmap(function, in_dims=dims)(*mixed)
            except RuntimeError as error:
                if any(text in str(error) for text in REFUSALS):
                    continue
                raise AssertionError(f"{sample}, argument {at} batched: {error}") from error
            for place, result in enumerate(got):
                _same(result, facula.stack([e[place] for e in loop]), (sample, at))


def _cubed(x):
    return (x**3).sum()


X = [1.0, 2.0]


@pytest.mark.parametrize(
    ("name", "build", "expected"),
    [
        ("jvp", lambda x: func.jvp(_cubed, (x,), (facula.ones(2),))[1], 15.0),
        (
            "jvp of grad",
            lambda x: func.jvp(func.grad(_cubed), (x,), (facula.ones(2),))[1],
            [6.0, 12.0],
        ),
        (
            "grad of jvp",
            lambda x: func.grad(lambda v: func.jvp(_cubed, (v,), (facula.ones(2),))[1])(x),
            [6.0, 12.0],
        ),
        (
            "jvp of jvp",
            lambda x: func.jvp(
                lambda v: func.jvp(_cubed, (v,), (facula.ones(2),))[1], (x,), (facula.ones(2),)
            )[1],
            18.0,
        ),
        (
            "jvp of vmap",
            lambda x: func.jvp(func.vmap(lambda s: s * s), (x,), (facula.ones(2),))[1],
            [2.0, 4.0],
        ),
        (
            "vmap of jvp",
            lambda x: func.vmap(lambda t: func.jvp(_cubed, (x,), (t,))[1])(facula.eye(2)),
            [3.0, 12.0],
        ),
        (
            "jvp of vmap of grad",
            lambda x: func.jvp(func.vmap(func.grad(lambda s: s**3)), (x,), (facula.ones(2),))[1],
            [6.0, 12.0],
        ),
        (
            "grad of grad of jvp",
            lambda x: func.grad(
                lambda v: func.grad(
                    lambda w: func.jvp(lambda u: u**4, (w,), (facula.ones(()),))[1]
                )(v)
            )(x[0]),
            24.0,
        ),
        ("jacfwd", lambda x: func.jacfwd(lambda v: v * v.sum())(x), [[4.0, 1.0], [2.0, 5.0]]),
        (
            "jacfwd of jacfwd",
            lambda x: func.jacfwd(func.jacfwd(_cubed))(x),
            [[6.0, 0.0], [0.0, 12.0]],
        ),
        (
            "jacrev of jacfwd",
            lambda x: func.jacrev(func.jacfwd(_cubed))(x),
            [[6.0, 0.0], [0.0, 12.0]],
        ),
        ("hessian", lambda x: func.hessian(_cubed)(x), [[6.0, 0.0], [0.0, 12.0]]),
        ("linearize", lambda x: func.linearize(_cubed, x)[1](facula.ones(2)), 15.0),
        (
            "vmap of hessian",
            lambda x: func.vmap(func.hessian(_cubed))(x[None]),
            [[[6.0, 0.0], [0.0, 12.0]]],
        ),
        (
            "jvp in place",
            lambda x: func.jvp(lambda v: v.clone().mul_(v), (x,), (facula.ones(2),))[1],
            [2.0, 4.0],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_nests(name, build, expected):
    assert build(facula.tensor(X)).tolist() == expected


def test_jvp_options():
    x = facula.ones(2)
    value, tangent, aux = func.jvp(lambda v: (v * 2, {"a": v}), (x,), (x,), has_aux=True)
    assert value.tolist() == tangent.tolist() == [2.0, 2.0] and aux["a"].tolist() == [1.0, 1.0]
    assert func.jvp(lambda v: facula.ones(3), (x,), (x,))[1].tolist() == [0.0] * 3
    with pytest.raises(RuntimeError, match="depend on the inputs"):
        func.jvp(lambda v: facula.ones(3), (x,), (x,), strict=True)
    assert func.jacfwd(lambda v: (v * 2, v), has_aux=True)(x)[1].tolist() == [1.0, 1.0]


class Cube(facula.autograd.Function):
    """x ** 3 in the style that transforms need."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 3 * x * x * tangent


class CubeWithRule(Cube):
    """The same with a batching rule by hand."""

    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, x):
        assert info.batch_size == x.size(in_dims[0])
        return CubeWithRule.apply(x), in_dims[0]


@pytest.mark.parametrize("cls", [Cube, CubeWithRule])
@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda f, x: f(x), [1.0, 8.0]),
        (lambda f, x: func.vmap(f)(x), [1.0, 8.0]),
        (lambda f, x: func.grad(lambda v: f(v).sum())(x), [3.0, 12.0]),
        (
            lambda f, x: func.grad(lambda v: func.grad(lambda w: f(w).sum())(v).sum())(x),
            [6.0, 12.0],
        ),
        (lambda f, x: func.vmap(func.grad(f))(x), [3.0, 12.0]),
        (lambda f, x: func.grad(lambda v: func.vmap(f)(v).sum())(x), [3.0, 12.0]),
        (lambda f, x: func.jvp(f, (x,), (facula.ones(2),))[1], [3.0, 12.0]),
        (lambda f, x: func.jvp(func.vmap(f), (x,), (facula.ones(2),))[1], [3.0, 12.0]),
        (lambda f, x: func.jacrev(f)(x).diagonal(), [3.0, 12.0]),
        (lambda f, x: func.jacfwd(f)(x).diagonal(), [3.0, 12.0]),
        (lambda f, x: func.vmap(func.vmap(f))(x[None])[0], [1.0, 8.0]),
    ],
)
def test_custom_function(cls, build, expected):
    assert build(cls.apply, facula.tensor(X)).tolist() == expected


def test_custom_function_must_have_rules():
    no_rule = type("NoRule", (Cube,), {"generate_vmap_rule": False})
    with pytest.raises(RuntimeError, match="must define vmap"):
        func.vmap(no_rule.apply)(facula.tensor(X))
    both = type("Both", (CubeWithRule,), {"generate_vmap_rule": True})
    with pytest.raises(RuntimeError, match="exclude each other"):
        func.vmap(both.apply)(facula.tensor(X))

    class Old(facula.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

    with pytest.raises(RuntimeError, match="setup_context"):
        func.grad(lambda v: Old.apply(v).sum())(facula.tensor(X))


@pytest.mark.filterwarnings("ignore:.*performance drop")
@pytest.mark.parametrize("mode", ["same", "different"])
def test_random_operators(mode):
    facula.manual_seed(0)
    x = facula.rand(3, 50) + 0.5
    for f in (
        facula.nn.functional.dropout,
        facula.bernoulli,
        facula.rand_like,
        facula.randn_like,
        lambda v: v.clone().uniform_(),
        lambda v: facula.multinomial(v, 5),
        lambda v: facula.randperm(50) + 0 * v,
    ):
        rows = (
            func.vmap(lambda v, f=f: (f(v) != 0) * f(facula.ones_like(v)), randomness=mode)(x)
            if f is facula.nn.functional.dropout
            else func.vmap(f, randomness=mode)(facula.ones_like(x) * 0.5)
        )
        assert rows.shape[0] == 3
        if f is not facula.nn.functional.dropout:
            assert (rows[0].tolist() == rows[1].tolist()) == (mode == "same"), f


def test_batch_norm_modules():
    net = facula.nn.Sequential(facula.nn.BatchNorm1d(2), facula.nn.Linear(2, 2))
    assert func.replace_all_batch_norm_modules_(net) is net
    assert net[0].running_mean is None and not net[0].track_running_stats
    out = func.vmap(net)(facula.randn(3, 4, 2))
    assert out.shape == (3, 4, 2)
    with pytest.raises(RuntimeError, match="must be batched"):
        func.vmap(facula.nn.BatchNorm1d(2))(facula.randn(3, 4, 2))


def test_debug_unwrap():
    seen = []
    func.vmap(func.vmap(lambda v: seen.append(func.debug_unwrap(v)) or v))(facula.ones(2, 3))
    assert seen[0].tolist() == [[1.0] * 3] * 2


def test_gradient_of_a_factor_that_the_others_lack():
    """_trilinear sums over what one factor alone has: its gradient is repeated there."""
    a, b, c = facula.randn(2, 3), facula.randn(2, 3), facula.randn(4, 3)
    call = lambda *factors: facula._trilinear(*factors, [1], [1], [0], [1])  # noqa: E731
    expected = (a * b * c.sum(0)).detach()
    assert facula.allclose(call(a, b, c), expected)
    got = facula.func.jacrev(call, 2)(a, b, c)
    wanted = facula.func.jacrev(lambda c: a * b * c.sum(0))(c)
    assert facula.allclose(got, wanted)


def test_vmap_of_one_quantile():
    """The number is the same for all samples."""
    x = facula.randn(3, 5)
    assert facula.equal(facula.func.vmap(lambda r: facula.quantile(r, 0.3))(x), x.quantile(0.3, 1))
