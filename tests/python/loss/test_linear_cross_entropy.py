"""Cross entropy of a linear map: by blocks and by the logits, layer and options."""

import warnings

import facula
import facula.nn.functional as F
import pytest
from facula import nn

OPTIONS = nn.LinearCrossEntropyOptions
SMALL = OPTIONS(batch_chunk_size=2)


def problem(dtype=facula.float64, probabilities=False, seed=0):
    """Samples, a matrix, a bias, weights of classes, targets."""
    facula.manual_seed(seed)
    x = facula.randn(7, 5, dtype=facula.float64).to(dtype).requires_grad_()
    w = facula.randn(11, 5, dtype=facula.float64).to(dtype).requires_grad_()
    b = facula.randn(11, dtype=facula.float64).to(dtype).requires_grad_()
    weight = facula.rand(11, dtype=facula.float64).to(dtype)
    if probabilities:
        target = facula.rand(7, 11, dtype=facula.float64).softmax(1).to(dtype)
    else:
        target = facula.randint(0, 11, (7,))
        target[3] = -100
    return x, w, b, weight, target


def results(options, probabilities, dtype=facula.float64, biased=True, weighted=True, **settings):
    """The loss and the gradients by input, matrix and bias."""
    x, w, b, weight, target = problem(dtype, probabilities)
    if "ignore_index" in settings:
        target = target.clamp(0)
    loss = F.linear_cross_entropy(
        x,
        w,
        target,
        linear_bias=b if biased else None,
        weight=weight if weighted else None,
        options=options,
        **settings,
    )
    along = facula.linspace(1, 2, loss.numel(), dtype=dtype).reshape(loss.shape)
    wanted = (x, w, b) if biased else (x, w)
    return [loss, *facula.autograd.grad(loss, wanted, along)]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize(("biased", "weighted"), [(True, True), (False, False), (True, False)])
def test_blocks_give_what_logits_give(reduction, probabilities, smoothing, biased, weighted):
    """Values and gradients, with blocks of two samples and with one block."""
    settings = {"reduction": reduction, "label_smoothing": smoothing}
    settings |= {"biased": biased, "weighted": weighted}
    expected = results(None, probabilities, **settings)
    for options in (SMALL, OPTIONS()):
        for got, wanted in zip(results(options, probabilities, **settings), expected, strict=True):
            assert got.shape == wanted.shape
            assert facula.allclose(got, wanted, rtol=1e-10, atol=1e-12)


def test_ignored_class():
    """ignore_index counts for nothing, in the divisor too."""
    settings = {"ignore_index": int(problem()[4][0])}
    for got, wanted in zip(
        results(SMALL, False, **settings), results(None, False, **settings), strict=True
    ):
        assert facula.allclose(got, wanted)


@pytest.mark.parametrize("dtype", [facula.float32, facula.bfloat16, facula.float16])
def test_other_dtypes(dtype):
    """The result is of the input's dtype; sums are in float32 at least."""
    exact = results(None, False)
    close = {facula.float32: 1e-5}.get(dtype, 0.05)
    for got, wanted in zip(results(SMALL, False, dtype=dtype), exact, strict=True):
        assert got.dtype == dtype
        assert facula.allclose(got.double(), wanted, rtol=close, atol=close)


def test_classes_go_by_blocks_too():
    """More logits than one block holds: 3 samples of 2 M classes each."""
    x = facula.ones(3, 1, requires_grad=True)
    w = facula.zeros(1_500_000, 1, requires_grad=True)
    target = facula.tensor([0, 749_999, 1_499_999])
    loss = F.linear_cross_entropy(x, w, target, reduction="none", options=OPTIONS())
    assert facula.allclose(loss, facula.tensor(1_500_000.0).log().expand(3))
    loss.sum().backward()
    assert facula.allclose(w.grad[target].squeeze(1), facula.tensor(3 / 1.5e6 - 1).expand(3))
    assert abs(float(w.grad.double().sum())) < 1e-3


@pytest.mark.parametrize("probabilities", [False, True])
def test_gradients_of_gradients(probabilities):
    """Second order, which goes through the sums as well."""
    x, w, b, weight, target = problem(probabilities=probabilities)

    def loss(x, w, b):
        return F.linear_cross_entropy(
            x, w, target, linear_bias=b, weight=weight, label_smoothing=0.1, options=SMALL
        )

    assert facula.autograd.gradcheck(loss, (x, w, b))
    assert facula.autograd.gradgradcheck(loss, (x, w, b))


def test_goes_back_twice():
    """Nothing is used up by the first pass."""
    x, w, _, _, target = problem()
    loss = F.linear_cross_entropy(x, w, target, options=SMALL)
    first = facula.autograd.grad(loss, (x, w), retain_graph=True)
    second = facula.autograd.grad(loss, (x, w))
    assert all(facula.equal(a, b) for a, b in zip(first, second, strict=True))


def test_func_grad():
    """Under function transforms."""
    x, w, _, _, target = problem()
    call = lambda x: F.linear_cross_entropy(x, w.detach(), target, options=SMALL)  # noqa: E731
    plain = facula.autograd.grad(call(x), x)[0]
    assert facula.allclose(facula.func.grad(call)(x.detach()), plain)


@pytest.mark.parametrize("lower", [False, True])
def test_autocast_takes_the_dtype_of_the_layer_before(lower):
    """A half input goes with a float32 matrix, which gets a float32 gradient."""
    x, w, _, _, target = problem(facula.float32)
    given = x.detach().bfloat16() if lower else x
    with facula.autocast("cpu", dtype=facula.bfloat16):
        loss = F.linear_cross_entropy(given, w, target, options=SMALL)
    loss.backward()
    assert loss.dtype == given.dtype
    assert w.grad.dtype == facula.float32
    assert abs(float(loss) - float(F.linear_cross_entropy(x, w, target))) < 0.05


def test_one_sample_and_none():
    """Without a batch; and a batch of nothing."""
    x, w, _, _, target = problem()
    for reduction in ("none", "mean"):
        got = F.linear_cross_entropy(x[0], w, target[0], reduction=reduction, options=OPTIONS())
        assert got.shape == ()
        assert facula.allclose(got, F.linear_cross_entropy(x[0], w, target[0]))
    empty = x.detach()[:0].requires_grad_()
    loss = F.linear_cross_entropy(empty, w, target[:0], reduction="sum", options=OPTIONS())
    loss.backward()
    assert float(loss) == 0
    assert empty.grad.shape == (0, 5)
    assert not w.grad.any()


def test_further_dimensions_go_without_options():
    """K-dimensional losses take the logits, with a warning where options were given."""
    x = facula.randn(4, 5)
    w, b = facula.randn(6, 2, 3, 5), facula.randn(6, 2, 3)
    target = facula.randint(0, 6, (4, 2, 3))
    expected = F.cross_entropy(facula.einsum("nf,cijf->ncij", x, w) + b, target)
    assert facula.allclose(F.linear_cross_entropy(x, w, target, linear_bias=b), expected)
    with pytest.warns(UserWarning, match="options serve"):
        got = F.linear_cross_entropy(x, w, target, linear_bias=b, options=OPTIONS())
    assert facula.allclose(got, expected)


WRONG = {
    "input of 3 dimensions": (RuntimeError, lambda x, w, t: (x[None], w, t), {}),
    "matrix of 1": (RuntimeError, lambda x, w, t: (x, w[0], t), {}),
    "features": (RuntimeError, lambda x, w, t: (x, w[:, :4], t), {}),
    "bias": (RuntimeError, lambda x, w, t: (x, w, t), {"linear_bias": facula.ones(3)}),
    "reduction": (ValueError, lambda x, w, t: (x, w, t), {"reduction": "all"}),
    "class": (IndexError, lambda x, w, t: (x, w, t + 11), {}),
    "smoothing": (RuntimeError, lambda x, w, t: (x, w, t), {"label_smoothing": 2.0}),
    "ignored": (
        RuntimeError,
        lambda x, w, t: (x, w, facula.rand(7, 11, dtype=x.dtype)),
        {"ignore_index": 1},
    ),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("options", [None, SMALL])
def test_errors(name, options):
    """The same classes of errors both ways."""
    error, arguments, settings = WRONG[name]
    x, w, _, _, target = problem()
    with pytest.raises(error):
        F.linear_cross_entropy(*arguments(x, w, target.clamp(0)), options=options, **settings)


BAD_OPTIONS = [
    {"batch_chunk_size": 0},
    {"batch_chunk_size": 2.5},
    {"chunking_method": "rows"},
    {"acc_policy": "exact"},
    {"acc_dtype": facula.int64},
]


@pytest.mark.parametrize("settings", BAD_OPTIONS, ids=str)
def test_options_are_checked(settings):
    """Options raise for what they do not know, and are constants."""
    with pytest.raises(ValueError, match=next(iter(settings))):
        OPTIONS(**settings)
    with pytest.raises(AttributeError):
        OPTIONS().acc_policy = "compact"


def test_layer():
    """Parameters of a Linear, shapes of the targets, the text."""
    layer = nn.LinearCrossEntropyLoss(5, 6, out_features=(2,), bias=True, weight=facula.ones(6))
    assert {k: tuple(v.shape) for k, v in layer.state_dict().items()} == {
        "weight": (6,),
        "linear.weight": (12, 5),
        "linear.bias": (12,),
    }
    x, target = facula.randn(3, 5), facula.randint(0, 6, (3, 2))
    logits = layer.linear(x).reshape(3, 6, 2)
    assert facula.allclose(layer(x, target), F.cross_entropy(logits, target))
    plain = nn.LinearCrossEntropyLoss(5, 6, options=SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain(x, target[:, 0]).backward()
    assert plain.linear.weight.grad.shape == (6, 5)
    assert "num_classes=6" in repr(layer)
    with pytest.raises(RuntimeError, match="weight"):
        nn.LinearCrossEntropyLoss(5, 6, weight=facula.ones(5))
    with pytest.raises(RuntimeError, match="label_smoothing"):
        nn.LinearCrossEntropyLoss(5, 6, label_smoothing=2.0)
