"""What `compile` puts off, what it joins, and what it says of breaks."""

import facula
import pytest
from facula import _C, nn
from facula._dynamo import explain
from facula._dynamo.exc import Unsupported


def counted(function, *args):
    """The result of a compiled call, and what the recorder counted in it."""
    before = _C._recorder_counts()
    result = facula.compile(function)(*args)
    after = _C._recorder_counts()
    return result, {k: after[k] - before[k] for k in after}


N = 1 << 14  # elements from which on calls are joined

CHAINS = {
    "flat": lambda x, y: ((x + y) * 2).relu().sigmoid() - y,
    "broadcast row": lambda x, y: ((x.view(128, -1) + y[:128]) * y[:128]).tanh(),
    "broadcast column": lambda x, y: (x.view(128, -1) * y[:128, None]).exp() + 1,
    "transposed": lambda x, y: (x.view(128, -1).t() + y.view(128, -1)).abs().sqrt(),
    "numbers and dtypes": lambda x, y: facula.where((x > 0) & (y < 1), x * 0.5, y),
    "in place": lambda x, y: x.clone().mul_(y).add_(1).clamp_(-1, 1),
    "kept between": lambda x, y: [x * 2, (x * 2 + y), (x * 2 + y).cos()],
    "halves": lambda x, y: ((x.half() + y.half()) * 3).tanh(),
    "integers": lambda x, y: ((x * 100).int() + 3) * (y * 100).int() // 7,
    "doubles": lambda x, y: (x.double() / y.double()).atan() * 2,
    "complex": lambda x, y: (facula.complex(x, y) * (1 + 2j)).exp(),
}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", CHAINS)
def test_joined_calls_give_the_bits_of_single_ones(name, threads):
    facula.manual_seed(0)
    x, y = facula.randn(N), facula.randn(N)
    before = facula.get_num_threads()
    facula.set_num_threads(threads)
    try:
        want = CHAINS[name](x, y)
        got, counts = counted(CHAINS[name], x, y)
    finally:
        facula.set_num_threads(before)
    for w, g in zip(*(v if isinstance(v, list) else [v] for v in (want, got)), strict=True):
        assert w.stride() == g.stride() and w.dtype == g.dtype
        assert w.contiguous().view(facula.uint8).equal(g.contiguous().view(facula.uint8))
    assert counts["fused"] >= 2, counts


ROWS = {
    "softmax": lambda x: (x - x.amax(-1, keepdim=True)).exp().div(x.exp().sum(-1, keepdim=True)),
    "layer norm": lambda x: (
        (c := x - x.mean(-1, keepdim=True)) * (c * c).mean(-1, keepdim=True).rsqrt() * x[0] + x[1]
    ),
    "without keepdim": lambda x: x * 2 - (x * x).sum(-1).sqrt()[:, None],
    "rows and results": lambda x: [y := x.exp(), s := y.sum(-1), y * s.view(-1, 1), s.log()],
    "two dimensions": lambda x: (
        (v := x.view(-1, 2, x.shape[1] // 2)) - v.amax((1, 2), keepdim=True)
    ),
    "in place": lambda x: (y := x * 1).sub_(y.mean(1, keepdim=True)).mul_(2),
    "rows in place": lambda x: [s := (x + 1).sum(-1, keepdim=True), s.mul_(2), x / s],
    "a row's number for a column": lambda x: x[: x.shape[1]] - x[: x.shape[1]].sum(-1),
    "whole": lambda x: (x - 1).abs().mean(),
    "whole twice": lambda x: [(y := x * x).sum(), y.amax(), (y + 1).norm(), y],
    "whole and on": lambda x: x / (x * x).sum(),
    "both ways": lambda x: [(y := x.exp()).sum(-1), y.sum(), y.sum(0)],
    "half": lambda x: (h := x.half() * 2) - h.mean(-1, keepdim=True),
    "double": lambda x: [(d := x.double() * 2).sum(-1), (d + 1).sum(), d.amin(1)],
    "integers": lambda x: (i := (x * 9).int() + 1) - i.amax(-1, keepdim=True),
    "bool": lambda x: [(x > 0).any(-1), (x > 3).all(), (x < 1).sum(-1)],
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", [(50, 100), (300, 64), (7, 3000), (1, 300_000), (3000, 101)])
@pytest.mark.parametrize("name", ROWS)
def test_reduced_rows_give_the_bits_of_single_calls(name, shape, threads):
    facula.manual_seed(0)
    f = ROWS[name]
    x = facula.randn(shape)
    if shape[0] < shape[1] and name in ("layer norm", "a row's number for a column"):
        x = facula.randn(shape[::-1])
    if name == "two dimensions":
        x = x[:, : shape[1] // 2 * 2].contiguous()
    before = facula.get_num_threads()
    facula.set_num_threads(threads)
    try:
        want = f(x)
        got, counts = counted(f, x)
    finally:
        facula.set_num_threads(before)
    for w, g in zip(*(v if isinstance(v, list) else [v] for v in (want, got)), strict=True):
        assert w.shape == g.shape and w.stride() == g.stride() and w.dtype == g.dtype
        assert w.reshape(-1).view(facula.uint8).equal(g.reshape(-1).view(facula.uint8))


@pytest.mark.parametrize("name", ["softmax", "layer norm", "without keepdim", "in place"])
def test_reduced_rows_are_one_group(name):
    _, counts = counted(ROWS[name], facula.randn(200, 128))
    assert counts["groups"] == 1 and counts["fused"] == counts["recorded"], counts


def test_a_long_row_is_summed_in_the_same_pass():
    _, counts = counted(ROWS["whole"], facula.randn(1 << 20))
    assert counts["groups"] == 1 and counts["fused"] == 3, counts


@pytest.mark.parametrize(
    "make", [lambda x: x * 2, lambda x: x.clone(), lambda x: x.sum(-1), lambda x: x.exp()]
)
def test_what_is_changed_in_place_and_forgotten(make):
    def f(x):
        y = make(x + 1)
        y.mul_(2)
        z = y + 1
        del y
        return z

    x = facula.randn(200, 100)
    assert counted(f, x)[0].equal(f(x))

    def forgotten(x):
        make(x).mul_(3)

    counted(forgotten, x)


def test_what_nobody_needs_is_not_computed():
    def f(x):
        for _ in range(5):
            (x * 2).exp().sum(0)
        return x + 1

    _, counts = counted(f, facula.ones(8))
    assert counts["dropped"] == 15


def allocated(which="allocated"):
    return _C._memory_stats()[which]


def test_what_joins_no_group_does_not_keep_its_arguments():
    def f(x):
        y = x @ x
        s = y.sum(0)
        before = allocated()
        del y
        return s, before - allocated()

    x = facula.randn(512, 512)
    (s, freed), counts = counted(f, x)
    assert s.equal((x @ x).sum(0)) and freed >= x.nbytes and counts["recorded"] == 0


def test_what_pending_calls_write_to_goes_with_the_last_of_them():
    def f(x):
        found = []
        for k in range(4):
            z = facula.zeros(1000 + k, 1000)
            z[k].copy_(x)
            found.append(z * 2)
            del z
        return found

    x = facula.randn(1000)
    want = f(x)
    before = allocated()
    _C._reset_peak_memory_stats()
    got = facula.compile(f)(x)
    peak = allocated("peak_allocated") - before
    assert all(w.equal(g) for w, g in zip(want, got, strict=True))
    assert peak < 6 * want[0].nbytes  # those written to and one result


def test_calls_on_few_elements_run_when_they_are_made():
    def f(x, big):
        y = (x * 2).exp()
        z = y * big[:8]  # what is put off comes first
        x.add_(1)
        return z + x

    x, big = facula.ones(8), facula.ones(N)
    want = f(x.clone(), big * 3)
    before = _C._set_least_deferred(2048)
    got, counts = counted(lambda x, big: f(x, big * 3), x, big)
    _C._set_least_deferred(before)
    assert got.equal(want)
    assert counts["recorded"] == 4 and counts["run_at_once"] == 2, counts


def test_a_long_chain_is_one_group():
    def f(x):
        for _ in range(16):
            x = x * 1.5 + 1
        return x

    _, counts = counted(f, facula.ones(1 << 16))
    assert counts["fused"] == 32 and counts["groups"] == 1


BREAKS = {
    "item": (lambda x: x * x.sum().item(), "values"),
    "branch": (lambda x: x if x.sum() > 0 else -x, "values"),
    "list": (lambda x: (x + 1).tolist(), "values"),
    "print": (lambda x: str(x * 2), "values"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_breaks_are_errors_of_a_full_graph(name):
    function, reason = BREAKS[name]
    with pytest.raises(Unsupported, match=rf"fullgraph.*{__file__}:\d+: .*{reason}"):
        facula.compile(function, fullgraph=True)(facula.ones(3))
    assert not _C._is_recording()


def test_a_full_graph_without_breaks():
    net = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.LayerNorm(4))
    x = facula.randn(2, 4)
    assert facula.compile(net, fullgraph=True)(x).equal(net(x))


def test_explain_counts_segments_and_names_lines():
    def f(x):
        y = x * 2 + 1
        if y.sum() > 0:
            y = y * 3
        return y - 1

    found = explain(f)(facula.ones(4))
    assert (found.graph_count, found.graph_break_count) == (2, 1)
    assert found.op_count == sum(found.ops_per_graph) > 3
    assert __file__ in found.break_reasons[0].line
    assert "Graph Break Count: 1" in str(found)


def test_memory_that_runs_out_ends_the_recording():
    held = []

    def f():
        held.append(facula.ones(1 << 60, dtype=facula.uint8) + 1)
        held.append(facula.ones(3) * 2)

    with pytest.raises((RuntimeError, MemoryError)):
        facula.compile(f)()
    assert not _C._is_recording()


def test_a_mode_that_is_left_on_stays():
    from facula.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.calls += 1
            return func(*args, **(kwargs or {}))

    mode = Count()
    facula.compile(mode.__enter__)()
    assert not _C._is_recording()
    facula.ones(2)
    mode.__exit__(None, None, None)
    assert mode.calls == 1


def test_generators_and_nested_compilation():
    inner = facula.compile(lambda x: x * 2)
    outer = facula.compile(lambda x: inner(x) + inner(x + 1))
    assert outer(facula.ones(2)).tolist() == [6.0, 6.0]


def test_interleaved_chains_become_a_group_each():
    """Operations that are written one by one over many tensors, as optimizers are."""

    def f(*tensors):
        tensors = [t * 2 for t in tensors]
        tensors = [t + 1 for t in tensors]
        for t in tensors:
            t.mul_(t)
        return [t.sqrt() for t in tensors]

    tensors = [facula.rand(64, 64 + i) for i in range(4)]
    results, counts = counted(f, *tensors)
    assert (counts["fused"], counts["groups"]) == (16, 4)
    assert all(r.equal(w) for r, w in zip(results, f(*tensors), strict=True))


def test_order_is_kept_where_memory_is_shared():
    """Neither reads nor writes pass a change of what they touch."""

    def f(x, other):
        a = x * 2
        flipped = x.flip(0)
        x.add_(1)
        b = x * 3 + a
        x[: x.numel() // 2].zero_()
        return a, flipped, b, x + other, x

    facula.manual_seed(0)
    x, other = facula.rand(1 << 13), facula.rand(1 << 13)
    want = f(x.clone(), other)
    got, _ = counted(f, x.clone(), other)
    assert all(w.equal(g) for w, g in zip(want, got, strict=True))


READERS = {
    "attention": lambda x: nn.functional.scaled_dot_product_attention(x * 2, x * 3, x * 4),
    "product": lambda x: (x * 2) @ (x * 3).transpose(2, 3),
    "distances": lambda x: facula.cdist(x * 2, x * 3),
    "convolution": lambda x: nn.functional.conv2d(x * 2, (x[:3, :, :3, :3] * 3)),
    "pooling": lambda x: nn.functional.max_pool2d(x * 2, 3),
    "largest": lambda x: (x * 2).topk(5, dim=2),
    "sorted": lambda x: (x * 2).sort(dim=-1),
    "sampled": lambda x: nn.functional.interpolate(x * 2, scale_factor=2, mode="bilinear"),
    "gathered": lambda x: (x * 2).gather(-1, (x * 0).long()),
    "normalized": lambda x: nn.functional.group_norm(x * 2, 2),
    "transformed": lambda x: facula.fft.rfft(x * 2).abs(),
}


@pytest.mark.parametrize("name", READERS)
def test_kernels_read_pending_values_in_their_threads(name):
    x = facula.randn(8, 4, 64, 32)
    before = facula.get_num_threads()
    facula.set_num_threads(2)
    try:
        want = READERS[name](x)
        found = facula.compile(READERS[name])(x)
    finally:
        facula.set_num_threads(before)
    want, found = (r if isinstance(r, tuple) else (r,) for r in (want, found))
    assert all(facula.equal(a, b) for a, b in zip(found, want, strict=True))
