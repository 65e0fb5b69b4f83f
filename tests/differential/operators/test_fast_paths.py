"""Kernels that choose a way by shape give PyTorch's results, and the same bits on any threads."""

import facula
import numpy as np
import pytest
import torch

NAN = float("nan")


def numbers(*shape, low=-2.0, high=2.0, seed=3):
    """Reproducible float32 values."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def integers(*shape, high, seed=4):
    """Reproducible int64 values from 0 on."""
    return np.random.default_rng(seed).integers(0, high, shape)


def holes(array, every=7):
    """A copy with a NaN in every so many places."""
    copy = array.copy()
    copy.reshape(-1)[::every] = NAN
    return copy


def rounded(array, step=0.25):
    """A copy with few different values, so that many are equal."""
    return np.round(array / np.float32(step)) * np.float32(step)


def conv(m, x, w, **options):
    return m.nn.functional.conv2d(x, w, **options)


def pad(mode="constant", *amounts):
    return lambda m, x: m.nn.functional.pad(x, amounts, mode=mode)


def last(function):
    """The function of a channels-last image."""
    return lambda m, x, *rest: function(m, x.contiguous(memory_format=m.channels_last), *rest)


def pool(*arguments):
    return lambda m, x: m.nn.functional.max_pool2d(x, *arguments, return_indices=True)


def sample(mode="bilinear", padding="zeros"):
    return lambda m, x, g: m.nn.functional.grid_sample(
        x, g, mode=mode, padding_mode=padding, align_corners=False
    )


def every_second_row(m):
    """Indices of rows, expanded over columns."""
    return (m.arange(30) * 2)[:, None].expand(30, 299)


def bags_of_four(m, w, i, mode):
    """The values, and the bag of every number."""
    return m._embedding_bag(w, i, m.arange(0, 60, 4), False, mode)[:2]


def bag(m, w, i, mode="sum", **more):
    return m.nn.functional.embedding_bag(i, w, mode=mode, **more)


IMAGE, WIDE = numbers(2, 3, 9, 37), numbers(2, 5, 6, 70)
DEEP = numbers(2, 24, 13, 11)
GRID = numbers(2, 9, 35, 2, low=-1.3, high=1.3)
ROWS, LINE = numbers(70, 300), numbers(70000)

IN_ORDER = np.argsort(numbers(70, 300, seed=5), 0)

# name: function, arrays
CASES = {
    "pad constant": (pad("constant", 1, 2, 3, 0), [IMAGE]),
    "pad cuts": (pad("constant", -2, 5, 1, -3), [IMAGE]),
    "pad widely": (pad("constant", 40, 3), [IMAGE]),
    "pad all dims": (pad("constant", 1, 1, 0, 2, 1, 0, 2, 1), [IMAGE]),
    "pad channels last": (last(pad("constant", 1, 2, 3, 1)), [IMAGE]),
    "pad transposed": (lambda m, x: pad("constant", 2, 1)(m, x.transpose(2, 3)), [IMAGE]),
    "pad reflect": (pad("reflect", 3, 2, 1, 4), [IMAGE]),
    "pad replicate": (pad("replicate", 3, 0, 1, 4), [IMAGE]),
    "pad reflect channels last": (last(pad("reflect", 3, 2, 1, 4)), [IMAGE]),
    "pad nothing": (pad("constant", 0, 0, 0, 0), [IMAGE]),
    "max_pool2d pairs": (pool(2), [WIDE]),
    "max_pool2d pairs with nan": (pool(2), [holes(WIDE)]),
    "max_pool2d pairs of equals": (pool(2), [rounded(WIDE)]),
    "max_pool2d pairs in a row": (pool((1, 2)), [holes(WIDE, 5)]),
    "max_pool2d pairs ceil": (lambda m, x: m.nn.functional.max_pool2d(x, 2, ceil_mode=True),
                              [IMAGE]),
    "max_pool1d": (lambda m, x: m.nn.functional.max_pool1d(x, 2), [numbers(3, 4, 75)]),
    "grid_sample": (sample(), [WIDE, GRID]),
    "grid_sample border": (sample(padding="border"), [WIDE, GRID]),
    "grid_sample reflection": (sample(padding="reflection"), [WIDE, GRID]),
    "grid_sample one row": (sample(), [numbers(2, 5, 1, 70), GRID]),
    "grid_sample beside infinity": (sample(), [np.where(WIDE > 1.9, np.inf, WIDE), GRID]),
    "depthwise": (lambda m, x, w: conv(m, x, w, groups=24), [DEEP, numbers(24, 1, 3, 3)]),
    "depthwise dilated": (lambda m, x, w: conv(m, x, w, groups=24, padding=(3, 2), dilation=(2, 1)),
                          [DEEP, numbers(24, 1, 4, 5)]),
    "depthwise bias": (lambda m, x, w, b: conv(m, x, w, bias=b, groups=24, padding=1),
                       [DEEP, numbers(24, 1, 3, 3), numbers(24)]),
    "depthwise strided": (lambda m, x, w: conv(m, x, w, groups=24, stride=2),
                          [DEEP, numbers(24, 1, 3, 3)]),
    "gather": (lambda m, x, i: x.gather(1, i), [ROWS, integers(70, 290, high=300)]),
    "gather int32": (lambda m, x, i: x.gather(0, i.to(m.int32)), [ROWS, integers(9, 300, high=70)]),
    "gather apart": (lambda m, x, i: x.t().gather(0, i.t()), [ROWS, integers(70, 40, high=300)]),
    "scatter": (lambda m, x, i: x.scatter(1, i, 7.0), [ROWS, integers(70, 200, high=300)]),
    "scatter expanded": (lambda m, x, y: x.scatter(0, every_second_row(m), y),
                       [ROWS, ROWS]),
    "scatter columns": (lambda m, x, i, y: x.scatter(0, i, y), [ROWS, IN_ORDER, ROWS]),
    "scatter_add": (lambda m, x, i, y: x.scatter_add(1, i, y),
                    [ROWS, integers(70, 300, high=9), ROWS]),
    "scatter_reduce amax": (lambda m, x, i, y: x.scatter_reduce(1, i, y, "amax"),
                            [ROWS, integers(70, 300, high=30), holes(ROWS, 91)]),
    "scatter_reduce amin": (lambda m, x, i, y: x.scatter_reduce(0, i, y, "amin"),
                            [holes(ROWS, 97), integers(70, 300, high=70), ROWS]),
    "topk": (lambda m, x: m.topk(x, 7), [ROWS]),
    "topk smallest with nan": (lambda m, x: m.topk(x, 7, largest=False)[0], [holes(ROWS)]),
    "topk with nan": (lambda m, x: m.topk(x, 7)[0], [holes(ROWS, 200)]),
    "topk of equals": (lambda m, x: m.topk(x, 9)[0], [rounded(ROWS)]),
    "topk bf16": (lambda m, x: m.topk(x.to(m.bfloat16), 9)[0], [ROWS]),
    "topk i64": (lambda m, x: m.topk(x, 3)[0], [integers(20, 500, high=1 << 40)]),
    "argmax of short rows": (lambda m, x: m.argmax(x, 1), [holes(rounded(numbers(999, 11)), 50)]),
    "min of short rows": (lambda m, x: m.min(x, 1), [holes(rounded(numbers(999, 11)), 50)]),
    "max of short rows i64": (lambda m, x: m.max(x, 1), [integers(300, 40, high=9)]),
    "amax of rows": (lambda m, x: m.amax(x, 1), [holes(ROWS, 700)]),
    "sort": (lambda m, x: m.sort(x, stable=True), [rounded(LINE)]),
    "sort descending": (lambda m, x: m.sort(x, descending=True, stable=True), [holes(LINE)]),
    "sort i64": (lambda m, x: m.sort(x - (1 << 39))[0], [integers(70000, high=1 << 40)]),
    "index_add of rows": (lambda m, x, i, y: x.index_add(0, i, y),
        [ROWS, integers(900, high=70), numbers(900, 300, seed=7)]),
    "index_add of one row": (lambda m, x, i, y: x.index_add(0, i, y.expand(900, 300)),
        [ROWS, integers(900, high=70), numbers(1, 300, seed=7)]),
    "index_add of columns": (lambda m, x, i, y: x.index_add(1, i, y),
        [ROWS, integers(900, high=300), numbers(70, 900, seed=7)]),
    "index_add far apart": (lambda m, x, i, y: x.double().index_add(0, i, y.double()),
        [numbers(100000), integers(70001, high=100000), numbers(70001, seed=7)]),
    "index_copy of rows": (lambda m, x, y: x.index_copy(0, m.arange(69, -1, -1), y),
        [ROWS, numbers(70, 300, seed=7)]),
    "index_reduce of rows": (lambda m, x, i, y: x.index_reduce(0, i, y, "amax"),
        [ROWS, integers(900, high=70), numbers(900, 300, seed=7)]),
    "sparse to_dense": (lambda m, i, j, x: m.sparse_coo_tensor(
        m.stack([i, j]), x.double(), (400, 300), check_invariants=True).to_dense(),
        [integers(70001, high=400), integers(70001, high=300, seed=8), numbers(70001)]),
    "unique by counts": (lambda m, x: m.unique(x - 150, return_inverse=True, return_counts=True),
        [integers(200000, high=300)]),
    "unique of bytes": (lambda m, x: m.unique(x.to(m.int8), return_inverse=True),
        [integers(400, 200, high=256)]),
    "unique far apart": (lambda m, x: m.unique(x * (1 << 40), return_counts=True),
        [integers(5000, high=300)]),
    "bincount": (lambda m, x: m.bincount(x, minlength=50), [integers(200000, high=300)]),
    "cosine_similarity": (lambda m, x, y: m.nn.functional.cosine_similarity(x, y),
                          [ROWS, holes(numbers(70, 300, seed=8), 4000)]),
    "cosine_similarity of zeros": (lambda m, x, y: m.nn.functional.cosine_similarity(x * 0, y, -1),
                                   [ROWS, ROWS]),
    "row times matrix": (lambda m, x, w: x @ w, [numbers(1, 700), numbers(700, 1500)]),
    "matrix transposed times vector": (lambda m, w, x: w.t() @ x,
                                       [numbers(700, 1501), numbers(700)]),
    "row times matrix, added": (lambda m, c, x, w: m.addmm(c, x, w, beta=0.5, alpha=2.0),
                                [numbers(1, 99), numbers(1, 40), numbers(40, 99)]),
    "embedding_bag": (bag, [numbers(50, 33), integers(60, 21, high=50)]),
    "embedding_bag by vectors": (bag, [numbers(50, 112), integers(60, 21, high=50)]),
    "embedding_bag by vectors, padded": (lambda m, w, i: bag(m, w, i, padding_idx=3),
        [numbers(50, 112), integers(60, 21, high=50)]),
    "embedding backward": (lambda m, g, i: m.ops.aten.embedding_dense_backward(
        g.double(), i, 500, 7, True),
        [numbers(40000, 5), integers(40000, high=500)]),
    "embedding_bag mean": (lambda m, w, i: bag(m, w, i, "mean", padding_idx=3),
                           [numbers(50, 33), integers(60, 21, high=50)]),
    "embedding_bag max": (lambda m, w, i: bag(m, w, i, "max"),
                          [numbers(50, 33), integers(60, 21, high=50)]),
    "bags of every number": (lambda m, w, i: bags_of_four(m, w, i, 0),
                             [numbers(50, 33), integers(60, high=50)]),
    "bags of every number, mean": (lambda m, w, i: bags_of_four(m, w, i, 1),
                                   [numbers(50, 33), integers(60, high=50)]),
    "softmax of columns": (lambda m, x: m.softmax(x * 40, 0), [ROWS]),
    "softmax of long rows": (lambda m, x: m.softmax(x * 9, 1), [numbers(3, 9001)]),
    "softmax of rows without an end": (lambda m, x: m.softmax(m.cat([x, x - np.inf], 1), 1),
                                       [numbers(5, 70)]),
    "log_softmax of rows with nan": (lambda m, x: m.log_softmax(x, 1), [holes(ROWS, 4000)]),
    "layer_norm gradient": (lambda m, x, w, g: m.ops.aten.native_layer_norm_backward(
        g, x, [300], x.mean(1, True), x.var(1, keepdim=True).rsqrt(), w, w, [True] * 3),
                            [ROWS, numbers(300), numbers(70, 300, seed=6)]),
    "sum of pairs": (lambda m, x: x.sum(0), [numbers(70001, 2)]),
    "sum of narrow columns": (lambda m, x: x.sum(0), [numbers(33333, 7)]),
    "sum of a few narrow rows": (lambda m, x: x.sum(0), [numbers(9, 3)]),
    "max of narrow columns": (lambda m, x: m.amax(x, 0), [holes(numbers(4099, 3), 5000)]),
    "var of narrow columns": (lambda m, x: m.var(x, 0), [numbers(4099, 5)]),
    "sum of all": (lambda m, x: x.sum(), [numbers(3, 100003)]),
    "sum of images": (lambda m, x: x.sum((0, 2)), [numbers(31, 3, 785)]),
    "index_select of rows": (lambda m, x, i: x.index_select(0, i),
                             [ROWS, integers(5000, high=70)]),
    "index_select of rows apart": (lambda m, x, i: x[:, 3:20].index_select(0, i.to(m.int32)),
                                   [ROWS, integers(5000, high=70)]),
    "embedding": (lambda m, x, i: m.nn.functional.embedding(i, x),
                  [numbers(70, 11), integers(90, 33, high=70)]),
    "arange": (lambda m, x: m.arange(-70000, 140000, 3), [ROWS]),
}  # fmt: skip


def run(m, name):
    """The results of a case as a list of NumPy arrays."""
    function, arrays = CASES[name]
    found = function(m, *(m.from_numpy(a.copy()) for a in arrays))
    found = found if isinstance(found, (tuple, list)) else [found]
    return [t.to(m.float32).numpy() if t.dtype == m.bfloat16 else t.numpy() for t in found]


@pytest.mark.parametrize("name", CASES)
def test_results_are_pytorchs(name):
    for found, wanted in zip(run(facula, name), run(torch, name), strict=True):
        assert found.dtype == wanted.dtype
        finite = wanted[np.isfinite(wanted)]
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6 * abs(finite).max(initial=1))


@pytest.mark.parametrize("name", CASES)
def test_threads_do_not_change_bits(name):
    before, found = facula.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 8):
            facula.set_num_threads(threads)
            found.append(run(facula, name))
    finally:
        facula.set_num_threads(before)
    for other in found[1:]:
        for first, second in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    "offsets, include", [([0, 4, 4, 9], False), ([0, 3, 12], True), ([0], False)]
)
def test_gradients_of_bags_without_their_numbers(offsets, include):
    table, which = numbers(20, 6), integers(12, high=20)
    scales, found = numbers(12), {}
    for m in (facula, torch):
        w, s = (m.from_numpy(a.copy()).requires_grad_() for a in (table, scales))
        out = m.nn.functional.embedding_bag(
            m.from_numpy(which), w, m.tensor(offsets), mode="sum", per_sample_weights=s,
            include_last_offset=include,
        )  # fmt: skip
        found[m] = [g.numpy() for g in m.autograd.grad((out * out).sum(), (w, s))]
    for mine, other in zip(found[facula], found[torch], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", [*range(1, 20), 31, 32, 33, 64, 65, 128, 255, 256, 1030, 4100])
def test_rows_of_any_length_are_copied_whole(width):
    """Bytes, so that every length of a row is met: into and out of wider rows, and by index."""
    wide = integers(150, width + 9, high=256).astype(np.uint8)
    which = integers(400, high=150)
    table = facula.from_numpy(wide)[:, 2 : width + 2]
    target = facula.zeros(150, width + 9, dtype=facula.uint8)
    target[:, 5 : width + 5] = table
    rows, around = wide[:, 2 : width + 2], np.delete(target.numpy(), np.s_[5 : width + 5], 1)
    np.testing.assert_array_equal(table.contiguous().numpy(), rows)
    np.testing.assert_array_equal(target.numpy()[:, 5 : width + 5], rows)
    assert not around.any()
    taken = table.index_select(0, facula.from_numpy(which))
    np.testing.assert_array_equal(taken.numpy(), rows[which])


@pytest.mark.parametrize("bad", [-1, 70, 1 << 62])
def test_rows_outside_of_a_table_are_refused(bad):
    which = integers(5000, high=70)
    which[4321] = bad
    for m in (facula, torch):
        with pytest.raises(IndexError):
            m.from_numpy(ROWS).index_select(0, m.from_numpy(which))
        with pytest.raises(IndexError):
            m.nn.functional.embedding(m.from_numpy(which), m.from_numpy(ROWS))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("bad", [-1, 300, 1 << 62])
def test_scatter_refuses_indices_outside(bad, threads):
    before = facula.get_num_threads()
    index = integers(70, 300, high=300)
    index[69, 299] = bad
    x, i = facula.from_numpy(ROWS), facula.from_numpy(index)
    try:
        facula.set_num_threads(threads)
        for scatter in (x.scatter, x.scatter_add):
            with pytest.raises(RuntimeError, match=f"index {bad} is out of bounds"):
                scatter(1, i, x)
    finally:
        facula.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("shape", [(200000,), (500, 40)], ids=str)
def test_of_values_with_one_index_the_last_stays(shape, threads):
    which = integers(70001, high=shape[0])
    values = numbers(70001, *shape[1:])
    expected = np.zeros(shape, np.float32)
    for i, value in zip(which, values, strict=True):
        expected[i] = value
    before = facula.get_num_threads()
    try:
        facula.set_num_threads(threads)
        index, source = facula.from_numpy(which), facula.from_numpy(values)
        found = facula.zeros(shape).index_put((index,), source)
        np.testing.assert_array_equal(found.numpy(), expected)
        found = facula.zeros(shape).index_copy(0, index, source)
        np.testing.assert_array_equal(found.numpy(), expected)
    finally:
        facula.set_num_threads(before)


@pytest.mark.parametrize("bad", [-1, 300, 1 << 62])
def test_positions_of_sparse_tensors_outside_are_refused(bad):
    index = np.stack([integers(9000, high=400), integers(9000, high=300, seed=8)])
    index[1, 8999] = bad
    with pytest.raises(RuntimeError, match=str(bad)):
        m = facula
        m.sparse_coo_tensor(m.from_numpy(index), m.ones(9000), (400, 300)).to_dense()


@pytest.mark.parametrize("rows", [1, 5, 8, 9, 40])
@pytest.mark.parametrize("depth, columns", [(64, 64), (33, 70), (1024, 31), (1030, 1100)])
def test_products_of_bfloat16_are_rounded_once(rows, depth, columns):
    a, b = numbers(rows, depth), numbers(depth, columns, seed=9)
    left, right = (facula.from_numpy(t).to(facula.bfloat16) for t in (a, b))
    exact = left.double().numpy() @ right.double().numpy()
    noise = np.sqrt(depth) * 2.0**-20
    for found in (left @ right, (right.t() @ left.t()).t(), left @ right.t().contiguous().t()):
        error = abs(found.double().numpy() - exact)
        assert np.all(error <= abs(exact) * 2.0**-8 * 1.01 + noise)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("bad", [-1, 300, 1 << 62])
def test_gather_refuses_indices_outside(bad, threads):
    before = facula.get_num_threads()
    index = integers(70, 300, high=300)
    index[69, 299] = bad
    try:
        facula.set_num_threads(threads)
        with pytest.raises(RuntimeError, match=f"index {bad} is out of bounds"):
            facula.from_numpy(ROWS).gather(1, facula.from_numpy(index))
    finally:
        facula.set_num_threads(before)


def test_embedding_bag_names_the_first_number_outside():
    table, which = facula.from_numpy(numbers(50, 8)), integers(4000, 20, high=50)
    which[3000, 7], which[3500, 1] = 50, -3
    with pytest.raises(RuntimeError, match="index 60007 must be a row from 0 to 49; got 50"):
        bag(facula, table, facula.from_numpy(which))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels last"])
@pytest.mark.parametrize(
    ("channels", "options"),
    [
        ((4, 8), {}),
        ((4, 8), {"padding": 1}),
        ((8, 8), {"groups": 8}),
        ((8, 8), {"groups": 8, "padding": 1}),
        ((8, 16), {"groups": 4, "stride": 2}),
        ((4, 4), {"dilation": 2}),
        ((16, 16), {"stride": 2, "padding": 1}),
    ],
)
def test_an_infinite_input_reaches_its_own_weights_alone(channels, options, last, dtype):
    """Weights that it has no part in keep finite gradients."""
    found = []
    for m in (facula, torch):
        x = m.ones(2, channels[0], 14, 14, dtype=getattr(m, dtype))
        x[0, 1, 5, 13] = x[1, 3, 0, 0] = float("inf")
        size = channels[1], channels[0] // options.get("groups", 1), 3, 3
        w = m.ones(size, dtype=x.dtype)
        if last:
            x, w = (t.to(memory_format=m.channels_last) for t in (x, w))
        w.requires_grad_()
        y = conv(m, x, w, **options)
        y.backward(m.ones(y.shape, dtype=y.dtype))
        found.append(w.grad.float().numpy())
    ours, theirs = found
    # PyTorch's kernels for bfloat16 meet infinities with zeros, too.
    kept = ~np.isnan(theirs) if dtype == "bfloat16" else slice(None)
    np.testing.assert_allclose(ours[kept], theirs[kept], rtol=0.02)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels last"])
@pytest.mark.parametrize("value", [float("inf"), NAN], ids=str)
@pytest.mark.parametrize(
    ("channels", "options"),
    [
        ((4, 8), {"padding": 1}),
        ((8, 8), {"groups": 8, "padding": 1}),
        ((8, 16), {"groups": 4, "stride": 2, "padding": 1}),
        ((4, 4), {"dilation": 2, "padding": 3}),
        ((16, 16), {"stride": 2, "padding": 1}),
        ((32, 32), {"padding": 1}),
    ],
)
def test_an_infinite_weight_meets_no_padding(channels, options, last, value, dtype):
    """Neither forward nor on the way to the input's gradient."""

    def run(m, dtype, last):
        x = m.ones(2, channels[0], 14, 14, dtype=getattr(m, dtype))
        w = m.ones(channels[1], channels[0] // options.get("groups", 1), 3, 3, dtype=x.dtype)
        w[1, 0, 0, 2] = w[0, 0, 1, 0] = value
        if last:
            x, w = (t.to(memory_format=m.channels_last) for t in (x, w))
        x.requires_grad_()
        y = conv(m, x, w, **options)
        y.backward(m.ones(y.shape, dtype=y.dtype))
        return y.detach().float().numpy(), x.grad.float().numpy()

    # Some of PyTorch's kernels multiply padding; those for float32 channels-last do not.
    for found, wanted in zip(run(facula, dtype, last), run(torch, "float32", True), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0.02)


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_scatter_add_of_unsigned_numbers(dtype):
    found = []
    for m in (facula, torch):
        zeros, fives = (m.tensor([[n] * 3] * 2, dtype=getattr(m, dtype)) for n in (0, 5))
        found.append(zeros.scatter_add(1, m.tensor([[0, 0], [1, 2]]), fives).tolist())
    assert found[0] == found[1] == [[10, 0, 0], [0, 5, 5]]
