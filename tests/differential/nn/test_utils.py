"""facula.nn.utils against torch.nn.utils: the same program with the same seed in both."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.nn.utils.prune")  # which torch itself does not load
import facula  # noqa: E402


def _parts(lib):
    return lib.nn, lib.nn.utils, lib.nn.utils.parametrize, lib.nn.utils.parametrizations


def _symmetric(lib):
    nn, _, parametrize, _ = _parts(lib)

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, a):
            return a.triu()

    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    first = layer.weight
    layer.weight = lib.ones(3, 3)
    layer(lib.ones(2, 3)).sum().backward()
    out = [first, layer.weight, layer.parametrizations.weight.original.grad]
    print(layer)
    parametrize.remove_parametrizations(layer, "weight")
    return [*out, layer.weight, *layer.state_dict().values()]


def _two_behind(lib):
    nn, _, parametrize, _ = _parts(lib)

    class LowRank(nn.Module):
        def forward(self, a, b):
            return a @ b

        def right_inverse(self, w):
            return w[:, :1].clone(), w[:1].clone()

    layer = nn.Linear(3, 4)
    parametrize.register_parametrization(layer, "weight", LowRank())
    entries = layer.parametrizations["weight"]
    copied = nn.Linear(3, 4)
    parametrize.transfer_parametrizations_and_params(layer, copied)
    names = [name for name, _ in layer.named_parameters()]
    assert names == [
        "bias",
        "parametrizations.weight.original0",
        "parametrizations.weight.original1",
    ]
    return [layer.weight, entries.original0, entries.original1, copied.weight]


def _weight_norm(lib, dim=0):
    nn, _, _, parametrizations = _parts(lib)
    layer = parametrizations.weight_norm(nn.Conv2d(2, 3, 2), dim=dim)
    layer(lib.ones(1, 2, 3, 3)).sum().backward()
    parts = layer.parametrizations.weight
    print(layer)
    return [layer.weight, parts.original0, parts.original0.grad, parts.original1.grad]


def _old_weight_norm(lib):
    nn, utils, _, parametrizations = _parts(lib)
    layer = utils.weight_norm(nn.Linear(3, 2))
    layer(lib.ones(1, 3)).sum().backward()
    state = layer.state_dict()
    new = parametrizations.weight_norm(nn.Linear(3, 2))
    new.load_state_dict(state)
    out = [layer.weight, layer.weight_g.grad, layer.weight_v.grad, new.weight]
    utils.remove_weight_norm(layer)
    return [*out, layer.weight, *layer.state_dict().values()]


def _spectral_norm(lib, dim=None, layer=None):
    nn, _, _, parametrizations = _parts(lib)
    layer = nn.ConvTranspose2d(2, 3, 2) if layer == "transposed" else nn.Linear(4, 3)
    parametrizations.spectral_norm(layer, n_power_iterations=2, dim=dim)
    first = layer.weight
    layer.eval()
    entry = layer.parametrizations.weight[0]
    layer.weight.square().sum().backward()
    grad = layer.parametrizations.weight.original.grad
    return [first, layer.weight, entry._u, entry._v, grad]


def _old_spectral_norm(lib):
    nn, utils, _, _ = _parts(lib)
    layer = utils.spectral_norm(nn.Linear(4, 3))
    y = layer(lib.ones(2, 4))
    y.sum().backward()
    out = [y, layer.weight, layer.weight_orig.grad, layer.weight_u, layer.weight_v]
    state = layer.state_dict()
    assert state._metadata[""]["spectral_norm"] == {"weight.version": 1}
    layer.load_state_dict(state)
    utils.remove_spectral_norm(layer)
    return [*out, layer.weight]


def _prune(lib):
    nn, utils, _, _ = _parts(lib)
    prune, out = utils.prune, []
    for how in (
        lambda m: prune.identity(m, "weight"),
        lambda m: prune.l1_unstructured(m, "weight", 5),
        lambda m: prune.l1_unstructured(m, "weight", 0.3, importance_scores=m.weight.abs() * -1),
        lambda m: prune.random_unstructured(m, "weight", 0.4),
        lambda m: prune.random_structured(m, "weight", 2, dim=1),
        lambda m: prune.ln_structured(m, "weight", 0.5, n=1, dim=0),
        lambda m: prune.ln_structured(m, "weight", 1, n=float("inf"), dim=-1),
        lambda m: prune.custom_from_mask(m, "weight", lib.eye(4)),
    ):
        layer = nn.Linear(4, 4)
        how(layer)
        prune.l1_unstructured(layer, "weight", amount=2)
        out += [layer.weight, layer.weight_mask, layer.weight_orig, layer(lib.ones(1, 4))]
        layer(lib.ones(1, 4)).sum().backward()
        out.append(layer.weight_orig.grad)
        assert prune.is_pruned(layer)
        prune.remove(layer, "weight")
        assert not prune.is_pruned(layer)
        out += [layer.weight, *layer.state_dict().values()]
    return out


def _prune_globally(lib):
    nn, utils, _, _ = _parts(lib)
    prune = utils.prune
    a, b = nn.Linear(4, 3), nn.Linear(2, 3)
    pairs = [(a, "weight"), (b, "weight"), (b, "bias")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.5)
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=3)
    container = next(iter(a._forward_pre_hooks.values()))
    assert type(container).__name__ == "PruningContainer" and len(container) == 2
    return [a.weight, b.weight, b.bias, a.weight_mask]


def _fusion(lib):
    nn, utils, _, _ = _parts(lib)
    out = []
    for conv, bn, transpose in (
        (nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4), False),
        (nn.ConvTranspose1d(2, 4, 3), nn.BatchNorm1d(4, affine=False), True),
    ):
        bn.running_mean.normal_()
        bn.running_var.uniform_(0.5, 2)
        fused = utils.fuse_conv_bn_eval(conv.eval(), bn.eval(), transpose)
        out += [fused.weight, fused.bias]
    linear, bn = nn.Linear(3, 4), nn.BatchNorm1d(4)
    bn.running_mean.normal_()
    fused = utils.fuse_linear_bn_eval(linear.eval(), bn.eval())
    return [*out, fused.weight, fused.bias, fused(lib.ones(2, 3))]


def _gradients(lib, dtypes=("float32", "float64")):
    params = [lib.nn.Parameter(lib.randn(3, 2, dtype=getattr(lib, d))) for d in dtypes]
    for p in params:
        p.grad = lib.randn(3, 2, dtype=p.dtype) * 3
    return params


def _clip(lib):
    utils, out = lib.nn.utils, []
    for norm_type in (2.0, 1.0, float("inf"), 0.5):
        params = _gradients(lib)
        out.append(utils.clip_grad_norm_(params, 1.0, norm_type))
        out += [p.grad for p in params]
        out.append(utils.get_total_norm([p.grad for p in params], norm_type))
    params = _gradients(lib)
    utils.clip_grads_with_norm_(params, 1.0, lib.tensor(4.0))
    out += [p.grad for p in params]
    utils.clip_grad_value_(params, 0.25)
    return out + [p.grad for p in params] + [utils.get_total_norm([])]


def _vectors(lib):
    layer = lib.nn.Linear(2, 3)
    vec = lib.nn.utils.parameters_to_vector(layer.parameters())
    lib.nn.utils.vector_to_parameters(vec * 2, layer.parameters())
    return [vec, layer.weight, layer.bias]


def _formats(lib):
    net = lib.nn.Sequential(lib.nn.Conv2d(4, 8, 3), lib.nn.ConvTranspose2d(8, 4, 2))
    lib.nn.utils.convert_conv2d_weight_memory_format(net, lib.channels_last)
    assert all(c.weight.is_contiguous(memory_format=lib.channels_last) for c in net)
    return [c.weight for c in net]


PROGRAMS = {
    "symmetric": _symmetric,
    "two tensors behind": _two_behind,
    "weight_norm": _weight_norm,
    "weight_norm of all": lambda lib: _weight_norm(lib, None),
    "old weight_norm": _old_weight_norm,
    "spectral_norm": _spectral_norm,
    "spectral_norm dim 1": lambda lib: _spectral_norm(lib, 1),
    "spectral_norm transposed": lambda lib: _spectral_norm(lib, None, "transposed"),
    "old spectral_norm": _old_spectral_norm,
    "prune": _prune,
    "prune globally": _prune_globally,
    "fusion": _fusion,
    "clip_grad": _clip,
    "vectors": _vectors,
    "memory_format": _formats,
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_agrees(name, capsys):
    torch.manual_seed(0)
    expected = PROGRAMS[name](torch)
    their_text = capsys.readouterr().out
    facula.manual_seed(0)
    got = PROGRAMS[name](facula)
    assert capsys.readouterr().out == their_text
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        assert type(ours).__name__ == type(theirs).__name__
        assert ours.requires_grad == theirs.requires_grad
        theirs = theirs.detach()
        assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
        near = torch.from_numpy(ours.detach().numpy())
        torch.testing.assert_close(near, theirs, rtol=1e-5, atol=1e-6)
        assert ours.stride() == theirs.stride()


def _layer(lib):
    return lib.nn.Linear(3, 2)


def _bad_parametrization(lib, result):
    class Bad(lib.nn.Module):
        def forward(self, x):
            return result(x)

    lib.nn.utils.parametrize.register_parametrization(_layer(lib), "weight", Bad())


ERRORS = [
    lambda lib: _bad_parametrization(lib, lambda x: x.double()),
    lambda lib: _bad_parametrization(lib, lambda x: x[0]),
    lambda lib: _bad_parametrization(lib, lambda x: 3),
    lambda lib: lib.nn.utils.parametrize.register_parametrization(
        _layer(lib), "other", lib.nn.Identity()
    ),
    lambda lib: lib.nn.utils.parametrize.remove_parametrizations(_layer(lib), "weight"),
    lambda lib: lib.nn.utils.remove_weight_norm(_layer(lib)),
    lambda lib: lib.nn.utils.remove_spectral_norm(_layer(lib)),
    lambda lib: lib.nn.utils.weight_norm(lib.nn.utils.weight_norm(_layer(lib))),
    lambda lib: lib.nn.utils.spectral_norm(_layer(lib), n_power_iterations=0),
    lambda lib: lib.nn.utils.parametrizations.spectral_norm(_layer(lib), "other"),
    lambda lib: lib.nn.utils.parametrizations.spectral_norm(_layer(lib), dim=2),
    lambda lib: lib.nn.utils.parametrizations.orthogonal(_layer(lib), "bias"),
    lambda lib: lib.nn.utils.parametrizations.orthogonal(_layer(lib), orthogonal_map="x"),
    lambda lib: lib.nn.utils.prune.l1_unstructured(_layer(lib), "weight", "x"),
    lambda lib: lib.nn.utils.prune.l1_unstructured(_layer(lib), "weight", 1.5),
    lambda lib: lib.nn.utils.prune.l1_unstructured(_layer(lib), "weight", -1),
    lambda lib: lib.nn.utils.prune.l1_unstructured(_layer(lib), "weight", 7),
    lambda lib: lib.nn.utils.prune.random_structured(_layer(lib), "bias", 1, 0),
    lambda lib: lib.nn.utils.prune.random_structured(_layer(lib), "weight", 1, 2),
    lambda lib: lib.nn.utils.prune.remove(_layer(lib), "weight"),
    lambda lib: lib.nn.utils.prune.custom_from_mask(_layer(lib), "weight", lib.ones(2)),
    lambda lib: lib.nn.utils.prune.global_unstructured(
        [(_layer(lib), "weight")], lib.nn.utils.prune.LnStructured, amount=1, n=1
    ),
    lambda lib: lib.nn.utils.fuse_conv_bn_eval(lib.nn.Conv1d(1, 1, 1), lib.nn.BatchNorm1d(1)),
    lambda lib: lib.nn.utils.skip_init(int),
    lambda lib: lib.nn.utils.skip_init(lib.nn.ReLU),
    lambda lib: __import__("pickle").dumps(lib.nn.utils.parametrizations.weight_norm(_layer(lib))),
]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("i", range(len(ERRORS)))
def test_error_agrees(i):
    with pytest.raises(Exception) as theirs:
        ERRORS[i](torch)
    with pytest.raises(Exception) as ours:
        ERRORS[i](facula)
    assert ours.type is theirs.type, (ours.value, theirs.value)
