"""facula.nn against torch.nn: same reprs, state_dict keys, numbers, gradients and errors."""

import inspect

import pytest

torch = pytest.importorskip("torch")
import facula  # noqa: E402

# (class, constructor arguments, shapes of the inputs)
LAYERS = [
    ("Linear", (4, 3), [(2, 4)]),
    ("Bilinear", (4, 3, 2), [(5, 4), (5, 3)]),
    ("Conv1d", (2, 4, 3, 2, 1), [(2, 2, 9)]),
    ("Conv2d", (2, 4, 3), [(2, 2, 8, 8)]),
    ("Conv3d", (2, 2, 2), [(1, 2, 4, 4, 4)]),
    ("ConvTranspose1d", (2, 3, 3, 2), [(2, 2, 5)]),
    ("ConvTranspose2d", (2, 3, 3, 2, 1, 1), [(2, 2, 5, 5)]),
    ("ConvTranspose3d", (2, 3, 2), [(1, 2, 3, 3, 3)]),
    ("BatchNorm1d", (4,), [(5, 4)]),
    ("BatchNorm2d", (2,), [(3, 2, 4, 4)]),
    ("BatchNorm3d", (2,), [(3, 2, 2, 2, 2)]),
    ("LayerNorm", (6,), [(3, 6)]),
    ("GroupNorm", (2, 4), [(3, 4, 5)]),
    ("RMSNorm", (6,), [(3, 6)]),
    ("InstanceNorm1d", (3,), [(2, 3, 6)]),
    ("InstanceNorm2d", (3,), [(2, 3, 4, 4)]),
    ("LocalResponseNorm", (2,), [(2, 4, 5, 5)]),
    ("MaxPool1d", (2,), [(2, 3, 8)]),
    ("MaxPool2d", (3, 2, 1), [(2, 3, 8, 8)]),
    ("MaxPool3d", (2,), [(1, 2, 4, 4, 4)]),
    ("AvgPool1d", (2,), [(2, 3, 8)]),
    ("AvgPool2d", (2,), [(2, 3, 8, 8)]),
    ("AvgPool3d", (2,), [(1, 2, 4, 4, 4)]),
    ("LPPool1d", (2, 3), [(2, 3, 8)]),
    ("LPPool2d", (2, 3), [(2, 3, 8, 8)]),
    ("AdaptiveAvgPool1d", (3,), [(2, 3, 8)]),
    ("AdaptiveAvgPool2d", (3,), [(2, 3, 8, 8)]),
    ("AdaptiveAvgPool3d", (2,), [(1, 2, 4, 4, 4)]),
    ("AdaptiveMaxPool1d", (3,), [(2, 3, 8)]),
    ("AdaptiveMaxPool2d", (3,), [(2, 3, 8, 8)]),
    ("AdaptiveMaxPool3d", (2,), [(1, 2, 4, 4, 4)]),
    ("ReLU", (), [(3, 4)]),
    ("ReLU6", (), [(3, 4)]),
    ("ELU", (), [(3, 4)]),
    ("SELU", (), [(3, 4)]),
    ("CELU", (1.5,), [(3, 4)]),
    ("GELU", (), [(3, 4)]),
    ("GELU", ("tanh",), [(3, 4)]),
    ("SiLU", (), [(3, 4)]),
    ("Mish", (), [(3, 4)]),
    ("Sigmoid", (), [(3, 4)]),
    ("Tanh", (), [(3, 4)]),
    ("Hardtanh", (), [(3, 4)]),
    ("Hardsigmoid", (), [(3, 4)]),
    ("Hardswish", (), [(3, 4)]),
    ("Hardshrink", (), [(3, 4)]),
    ("LeakyReLU", (0.1,), [(3, 4)]),
    ("LogSigmoid", (), [(3, 4)]),
    ("PReLU", (), [(3, 4)]),
    ("Softplus", (), [(3, 4)]),
    ("Softshrink", (), [(3, 4)]),
    ("Softsign", (), [(3, 4)]),
    ("Tanhshrink", (), [(3, 4)]),
    ("Threshold", (0.1, 20), [(3, 4)]),
    ("GLU", (), [(3, 4)]),
    ("Softmax", (1,), [(3, 4)]),
    ("Softmin", (1,), [(3, 4)]),
    ("LogSoftmax", (1,), [(3, 4)]),
    ("Softmax2d", (), [(2, 3, 2, 2)]),
    ("Flatten", (), [(2, 3, 4)]),
    ("Unflatten", (1, (2, 2)), [(3, 4)]),
    ("Fold", ((4, 4), 2), [(1, 12, 9)]),
    ("Unfold", (2,), [(2, 3, 4, 4)]),
    ("PixelShuffle", (2,), [(1, 8, 2, 2)]),
    ("PixelUnshuffle", (2,), [(1, 2, 4, 4)]),
    ("ChannelShuffle", (2,), [(1, 4, 2, 2)]),
    ("Upsample", (None, 2), [(1, 2, 3, 3)]),
    ("UpsamplingBilinear2d", (5,), [(1, 2, 3, 3)]),
    ("UpsamplingNearest2d", (5,), [(1, 2, 3, 3)]),
    ("CosineSimilarity", (), [(3, 4), (3, 4)]),
    ("PairwiseDistance", (), [(3, 4), (3, 4)]),
    ("ZeroPad2d", (1,), [(1, 2, 3, 3)]),
    ("ConstantPad1d", ((1, 2), 3.5), [(2, 3, 4)]),
    ("ReflectionPad2d", (1,), [(1, 2, 3, 3)]),
    ("ReplicationPad3d", (1,), [(1, 2, 3, 3, 3)]),
    ("CircularPad1d", (1,), [(2, 3, 4)]),
    ("MSELoss", (), [(3, 4), (3, 4)]),
    ("L1Loss", (), [(3, 4), (3, 4)]),
    ("SmoothL1Loss", (), [(3, 4), (3, 4)]),
    ("HuberLoss", (), [(3, 4), (3, 4)]),
    ("SoftMarginLoss", (), [(3, 4), (3, 4)]),
    ("KLDivLoss", (None, None, "sum"), [(3, 4), (3, 4)]),
    ("BCEWithLogitsLoss", (), [(3, 4), (3, 4)]),
    ("PoissonNLLLoss", (), [(3, 4), (3, 4)]),
    ("TripletMarginLoss", (), [(3, 4), (3, 4), (3, 4)]),
    ("MarginRankingLoss", (), [(3,), (3,), (3,)]),
    ("Dropout", (0.4,), [(6, 7)]),
    ("Dropout1d", (), [(2, 3, 4)]),
    ("Dropout2d", (), [(2, 3, 4, 4)]),
    ("AlphaDropout", (), [(3, 4)]),
    ("FeatureAlphaDropout", (), [(3, 4, 2)]),
]


def _pair(name, args):
    facula.manual_seed(0)
    ours = getattr(facula.nn, name)(*args)
    torch.manual_seed(0)
    return ours, getattr(torch.nn, name)(*args)


def _as_torch(tensor):
    return torch.from_numpy(tensor.detach().numpy().copy())


@pytest.mark.parametrize("name, args, shapes", LAYERS)
def test_layer_agrees(name, args, shapes):
    ours, theirs = _pair(name, args)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for key, value in theirs.state_dict().items():
        assert torch.equal(_as_torch(ours.state_dict()[key]), value), key
    generator = torch.Generator().manual_seed(1)
    theirs_in = [torch.rand(s, generator=generator) for s in shapes]
    ours_in = [facula.from_numpy(t.numpy().copy()) for t in theirs_in]
    # Not every loss can be differentiated by its target, so only the first input is.
    theirs_in[0].requires_grad_()
    ours_in[0].requires_grad_()
    torch.manual_seed(2)
    expected = theirs(*theirs_in)
    facula.manual_seed(2)
    got = ours(*ours_in)
    torch.testing.assert_close(_as_torch(got), expected.detach(), rtol=1e-4, atol=1e-5)
    expected.sum().backward()
    got.sum().backward()
    torch.testing.assert_close(_as_torch(ours_in[0].grad), theirs_in[0].grad, rtol=1e-3, atol=1e-4)
    for (key, a), (_, b) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        torch.testing.assert_close(_as_torch(a.grad), b.grad, rtol=1e-3, atol=1e-4, msg=key)


def _names(cls):
    # Only names, kinds and defaults count; functions as defaults differ by nature.
    return [
        (p.name, p.kind, p.default if not callable(p.default) else None)
        for p in inspect.signature(cls.__init__).parameters.values()
    ]


@pytest.mark.parametrize("name", sorted({layer[0] for layer in LAYERS}))
def test_signature_agrees(name):
    ours, theirs = _names(getattr(facula.nn, name)), _names(getattr(torch.nn, name))
    if any(p[1] == inspect.Parameter.VAR_POSITIONAL for p in theirs):
        return
    assert ours == theirs


@pytest.mark.parametrize(
    "loss, shape", [("CrossEntropyLoss", (4, 5)), ("NLLLoss", (4, 5)), ("MultiMarginLoss", (4, 5))]
)
def test_class_losses(loss, shape):
    ours, theirs = _pair(loss, ())
    scores, classes = torch.randn(shape), torch.tensor([1, 0, 4, 2])
    got = ours(facula.from_numpy(scores.numpy()), facula.from_numpy(classes.numpy()))
    torch.testing.assert_close(_as_torch(got), theirs(scores, classes))


# Each is a call that must fail, and what facula's text must name.
BAD_CALLS = {
    "attribute": (lambda m: m.foo, "'foo'"),
    "dotted name": (lambda m: m.register_parameter("a.b", None), '"."'),
    "empty name": (lambda m: m.register_buffer("", None), "buffer name must not be empty"),
    "name in use": (lambda m: m.add_module("in_features", None), "'in_features'"),
    "missing keys": (lambda m: m.load_state_dict({}), 'Missing key(s) in state_dict: "weight"'),
    "state that is no mapping": (lambda m: m.load_state_dict(3), "mapping; got int"),
    "submodule": (lambda m: m.get_submodule("weight"), "`weight`"),
    "mode": (lambda m: m.train(3), "bool; got 3"),
    "number for a parameter": (lambda m: setattr(m, "weight", 3), "'int' as parameter 'weight'"),
    "buffer": (lambda m: m.get_buffer("weight"), "weight"),
}


def _raised(call, module):
    with pytest.raises(Exception) as caught:
        call(module)
    return caught.value


@pytest.mark.parametrize("name", BAD_CALLS)
def test_module_errors(name):
    """The class is PyTorch's, the text facula's own."""
    call, text = BAD_CALLS[name]
    ours, theirs = (_raised(call, module) for module in _pair("Linear", (4, 3)))
    assert type(ours).__name__ == type(theirs).__name__
    assert text in str(ours)


@pytest.mark.parametrize(
    "kw",
    [{}, {"bias": False}, {"kdim": 6, "vdim": 5}, {"add_bias_kv": True, "add_zero_attn": True}],
)
@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention(kw, need_weights):
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(8, 2, **kw)
    facula.manual_seed(0)
    ours = facula.nn.MultiheadAttention(8, 2, **kw)
    inputs = [torch.randn(3, 4, n) for n in (8, kw.get("kdim", 8), kw.get("vdim", 8))]
    expected, weights = theirs(*inputs, need_weights=need_weights)
    got, our_weights = ours(
        *[facula.from_numpy(t.numpy()) for t in inputs], need_weights=need_weights
    )
    torch.testing.assert_close(_as_torch(got), expected.detach(), rtol=1e-4, atol=1e-5)
    assert (weights is None) == (our_weights is None)


@pytest.mark.parametrize("window", [(0, 1, -2, 2), (1, 2, -1, 1), (0, 1, 1, 2), (0, 1, -0.1, 0.1)])
def test_trunc_normal_draws_the_same(window):
    torch.manual_seed(0)
    expected = torch.nn.init.trunc_normal_(torch.empty(40), *window)
    facula.manual_seed(0)
    got = facula.nn.init.trunc_normal_(facula.empty(40), *window)
    torch.testing.assert_close(_as_torch(got), expected)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("by_blocks", [False, True])
def test_linear_cross_entropy(reduction, probabilities, by_blocks):
    """Values and gradients are PyTorch's, by its logits and by its blocks."""
    torch.manual_seed(0)
    numbers = torch.randn(6, 5), torch.randn(9, 5), torch.rand(9), torch.randn(9)
    target = torch.rand(6, 9).softmax(1) if probabilities else torch.randint(0, 9, (6,))
    found = []
    for lib in (facula, torch):
        convert = (lambda t: t.clone()) if lib is torch else (lambda t: facula.tensor(t.tolist()))
        x, w, weight, bias = map(convert, numbers)
        leaves = [t.requires_grad_() for t in (x, w, bias)]
        options = lib.nn.LinearCrossEntropyOptions(batch_chunk_size=2) if by_blocks else None
        loss = lib.nn.functional.linear_cross_entropy(
            x,
            w,
            convert(target),
            weight=weight,
            linear_bias=bias,
            reduction=reduction,
            options=options,
        )
        loss.sum().backward()
        found.append([loss, *(leaf.grad for leaf in leaves)])
    for got, expected in zip(*found, strict=True):
        torch.testing.assert_close(_as_torch(got), expected.detach(), rtol=1e-5, atol=1e-5)


def test_linear_cross_entropy_layer():
    """The layer's text, state and signature."""
    args = {"out_features": (2,), "bias": True}
    ours, theirs = (lib.nn.LinearCrossEntropyLoss(5, 7, **args) for lib in (facula, torch))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert _names(type(ours)) == _names(type(theirs))
