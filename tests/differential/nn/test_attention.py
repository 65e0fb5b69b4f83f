"""facula.nn.attention and the adaptive softmax against PyTorch's, by the same program."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.nn.attention.flex_attention")
pytest.importorskip("torch.nn.attention.bias")
import facula  # noqa: E402


def _inputs(lib, *shape, n=3):
    return [lib.randn(*shape, requires_grad=True) for _ in range(n)]


def _flex(lib, score_mod=None, mask=None, **options):
    flex = lib.nn.attention.flex_attention
    # Without gradients: PyTorch has none of flex_attention on the CPU.
    q, k, v = (lib.randn(2, 4, 6, 8) for _ in range(3))
    if options.pop("grouped", False):
        k, v = (lib.randn(2, 2, 6, 8) for _ in range(2))
        options["enable_gqa"] = True
    if mask is not None:
        options["block_mask"] = flex.create_block_mask(mask, 2, 4, 6, 6, device="cpu")
    table = lib.randn(4, 6)
    mod = score_mod and (lambda *args: score_mod(table, *args))
    out = flex.flex_attention(q, k, v, mod, **options)
    parts = list(out) if isinstance(out, tuple) else [out]
    parts = [p for part in parts for p in (part if isinstance(part, tuple) else (part,))]
    return [p for p in parts if p is not None]


def _block_mask(lib, mask, size, lengths=(100, 90), index=None):
    flex = lib.nn.attention.flex_attention
    made = flex.create_block_mask(mask, 2, 3, *lengths, device="cpu", BLOCK_SIZE=size)
    print(made)
    made = made if index is None else made[index]
    print(repr(made).split("mask_mod")[0], made.sparsity(), made.numel())
    names = flex.BlockMask._TENSOR_ATTRS[:8]
    return [made.to_dense(), *(getattr(made, name) for name in names)]


def _from_blocks(lib):
    flex = lib.nn.attention.flex_attention
    counts = lib.tensor([[[1, 2]]], dtype=lib.int32)
    indices = lib.tensor([[[[1, 0], [0, 1]]]], dtype=lib.int32)
    made = flex.BlockMask.from_kv_blocks(counts, indices, BLOCK_SIZE=4)
    print(made)
    return [made.to_dense(), made.q_num_blocks, made.q_indices]


def _masks(lib):
    flex = lib.nn.attention.flex_attention

    def causal(b, h, q, kv):
        return q >= kv

    def near(b, h, q, kv):
        return q - kv < 2 + h

    both, one = flex.and_masks(causal, near), flex.or_masks(causal, near)
    return [flex.create_mask(m, 1, 2, 4, 5, device="cpu") for m in (causal, both, one)]


def _bias(lib, make, lengths):
    q = lib.randn(1, 2, lengths[0], 8, requires_grad=True)
    k, v = _inputs(lib, 1, 2, lengths[1], 8, n=2)
    bias = getattr(lib.nn.attention.bias, make)(*lengths)
    with lib.nn.attention.sdpa_kernel(lib.nn.attention.SDPBackend.MATH):
        out = lib.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    out.sum().backward()
    return [out, q.grad, k.grad, v.grad, bias._materialize()]


def _adaptive(lib, **options):
    m = lib.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10, 15], div_value=2.0, **options)
    x = lib.randn(12, 16, requires_grad=True)
    target = lib.tensor([0, 3, 4, 9, 10, 14, 15, 19, 1, 1, 18, 5])
    out = m(x, target)
    out.loss.backward()
    single = [*m(x[0], target[0]), *m(x[2], target[2]), *m(x[:3], target[[0, 2, 7]])]
    grads = [p.grad for p in m.parameters()]
    print(m)
    return [*out, *single, m.log_prob(x), m.predict(x), x.grad, *grads]


def _sync(lib):
    net = lib.nn.Sequential(lib.nn.BatchNorm1d(3), lib.nn.BatchNorm2d(2))
    net = lib.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    print(net)
    out = net[0](lib.randn(4, 3))
    return [out, *net.state_dict().values()]


def _conv_grads(lib):
    import importlib

    grad = importlib.import_module(f"{lib.__name__}.nn.grad")
    x, w = lib.randn(2, 4, 7), lib.randn(6, 2, 3)
    g = lib.randn(2, 6, 3)
    options = {"stride": 2, "groups": 2}
    return [
        grad.conv1d_input(x.shape, w, g, **options),
        grad.conv1d_weight(x, w.shape, g, **options),
        grad.conv2d_weight(lib.ones(1, 1, 4, 4), (1, 1, 3, 3), lib.randn(1, 1, 4, 4), padding=1),
    ]


def _lazy_norms(lib):
    out = []
    for name, shape in (
        ("LazyBatchNorm1d", (4, 3)),
        ("LazyBatchNorm2d", (2, 3, 4, 4)),
        ("LazyBatchNorm3d", (2, 3, 2, 2, 2)),
        ("LazyInstanceNorm1d", (2, 3, 4)),
        ("LazyInstanceNorm2d", (2, 3, 4, 4)),
    ):
        for options in ({}, {"affine": True}, {"track_running_stats": False}):
            m = getattr(lib.nn, name)(**options)
            print(m)
            out += [m(lib.randn(*shape)), *m.state_dict().values()]
            print(m)
    return out


GROUPED = (
    ((8, 16), (2, 16, 8), [3, 8]),
    ((2, 8, 16), (16, 8), [1, 8]),
    ((8, 16), (16, 8), [8, 16]),
    ((2, 8, 16), (2, 16, 8), None),
)


def _grouped(lib):
    out = []
    for a, b, ends in GROUPED:
        a, b = lib.randn(*a, requires_grad=True), lib.randn(*b, requires_grad=True)
        ends = None if ends is None else lib.tensor(ends, dtype=lib.int32)
        product = lib.nn.functional.grouped_mm(a, b, offs=ends)
        product.square().sum().backward()
        out += [product, a.grad, b.grad]
    return out


def _grouped_error(lib, a=(8, 16), b=(2, 16, 8), ends=(3, 8), dtype="int32", **options):
    ends = None if ends is None else lib.tensor(ends, dtype=getattr(lib, dtype))
    return lib.nn.functional.grouped_mm(lib.ones(*a), lib.ones(*b), offs=ends, **options)


def _causal(b, h, q, kv):
    return q >= kv


PROGRAMS = {
    "flex": _flex,
    "flex with a bias": lambda lib: _flex(lib, lambda t, s, b, h, q, kv: s + t[h, kv] * (q - kv)),
    "flex of batches": lambda lib: _flex(lib, lambda t, s, b, h, q, kv: s * (b + 1)),
    "flex causal": lambda lib: _flex(lib, None, _causal, return_lse=True),
    "flex with a blind query": lambda lib: _flex(lib, None, lambda b, h, q, kv: (q > 0) & (kv > b)),
    "flex grouped": lambda lib: _flex(lib, grouped=True, scale=0.3),
    "flex aux": lambda lib: _flex(
        lib, return_aux=lib.nn.attention.flex_attention.AuxRequest(lse=True)
    ),
    "block mask": lambda lib: _block_mask(lib, _causal, 32),
    "block mask window": lambda lib: _block_mask(
        lib, lambda b, h, q, kv: (q >= kv) & (q - kv < 20), (16, 8)
    ),
    "block mask by head": lambda lib: _block_mask(
        lib, lambda b, h, q, kv: (q - kv <= 10 * h) & (kv >= 5 * b), 16, (64, 64)
    ),
    "block mask slice": lambda lib: _block_mask(lib, _causal, 32, index=(1, 0)),
    "block mask of blocks": _from_blocks,
    "masks": _masks,
    "upper left": lambda lib: _bias(lib, "causal_upper_left", (3, 5)),
    "lower right": lambda lib: _bias(lib, "causal_lower_right", (3, 5)),
    "square": lambda lib: _bias(lib, "causal_lower_right", (4, 4)),
    "adaptive softmax": _adaptive,
    "adaptive softmax with bias": lambda lib: _adaptive(lib, head_bias=True),
    "sync batch norm": _sync,
    "gradients of convolutions": _conv_grads,
    "lazy norms": _lazy_norms,
    "grouped products": _grouped,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_agrees(name, capsys):
    torch.manual_seed(0)
    expected = PROGRAMS[name](torch)
    their_text = capsys.readouterr().out
    facula.manual_seed(0)
    got = PROGRAMS[name](facula)
    assert capsys.readouterr().out.replace("facula.", "torch.") == their_text
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        near = torch.from_numpy(ours.detach().numpy())
        torch.testing.assert_close(near, theirs.detach(), rtol=1e-4, atol=1e-5)


def _flex_of(lib, *shapes, **options):
    tensors = [lib.ones(*shape) for shape in shapes]
    return lib.nn.attention.flex_attention.flex_attention(*tensors, **options)


Q = (2, 4, 6, 8)
ERRORS = [
    lambda lib: _flex_of(lib, Q[1:], Q[1:], Q[1:]),
    lambda lib: _flex_of(lib, Q, (2, 2, 6, 8), (2, 2, 6, 8)),
    lambda lib: _flex_of(lib, Q, (2, 4, 6, 4), Q),
    lambda lib: _flex_of(lib, Q, (1, 4, 6, 8), (1, 4, 6, 8)),
    lambda lib: _flex_of(
        lib,
        Q,
        Q,
        Q,
        return_aux=lib.nn.attention.flex_attention.AuxRequest(max_scores=True),
    ),
    lambda lib: lib.nn.attention.sdpa_kernel(3).__enter__(),
    lambda lib: lib.nn.attention.bias.causal_upper_left(2),
    lambda lib: lib.nn.HuberLoss(delta="x"),
    lambda lib: lib.nn.HuberLoss(delta=None),
    lambda lib: lib.nn.HuberLoss(delta=-1.0)(lib.ones(2), lib.ones(2)),
    lambda lib: lib.nn.Softmax(dim="x"),
    lambda lib: lib.nn.Softmax(dim=True),
    lambda lib: lib.nn.LogSoftmax(dim=1.5),
    lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [5, 3]),
    lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 10, []),
    lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [0, 3]),
    lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 10]),
    lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2])(lib.ones(1, 8), lib.tensor([10])),
    lambda lib: lib.nn.SyncBatchNorm(2)(lib.ones(2)),
    lambda lib: _grouped_error(lib, ends=None),
    lambda lib: _grouped_error(lib, dtype="int64"),
    lambda lib: _grouped_error(lib, a=(16,)),
    lambda lib: _grouped_error(lib, b=(2, 4, 8)),
    lambda lib: _grouped_error(lib, a=(2, 8, 16)),
    lambda lib: _grouped_error(lib, out_dtype=lib.float16),
    lambda lib: lib.nn.Linear(1, 1).register_buffer("weight", None),
]


@pytest.mark.parametrize("i", range(len(ERRORS)))
def test_error_agrees(i):
    with pytest.raises(Exception) as theirs:
        ERRORS[i](torch)
    with pytest.raises(Exception) as ours:
        ERRORS[i](facula)
    assert ours.type is theirs.type, (ours.value, theirs.value)
