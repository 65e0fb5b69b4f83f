"""_addmm_activation gives PyTorch's results, and the bits of addmm with an activation behind it."""

import facula
import numpy as np
import pytest
import torch

FLOATING = ["float32", "float64", "bfloat16", "float16"]
# One for each way of a product: plain loops, small ones (also of few columns, and of more than a
# tile has), dot products, one row or column, packed panels in one pass and several, ragged ones,
# and none.
SHAPES = [
    (3, 5, 4),
    (64, 10, 64),
    (70, 131, 3),
    (5, 70, 600),
    (1, 300, 40),
    (300, 1, 40),
    (64, 64, 64),
    (130, 257, 300),
    (40, 512, 1300),
    (600, 33, 20),
    (8, 96, 256),
    (4, 6, 0),
]


def arguments(module, dtype, shape, order="kn"):
    """An addend of one row, and two matrices; letters of `order` say which dimension is outer."""
    m, n, k = shape
    random = np.random.default_rng(m + n + k)
    high = 40 if "int" in dtype else 2
    a, b, c = (random.uniform(-high, high, s) for s in ((m, k), (k, n), (n,)))
    if order == "nk":
        a, b = a.T.copy().T, b.T.copy().T
    make = lambda x: module.from_numpy(x).to(getattr(module, dtype))  # noqa: E731
    return make(c), make(a), make(b)


def activated(module, y, use_gelu):
    return module.nn.functional.gelu(y) if use_gelu else module.relu(y)


@pytest.mark.parametrize("order", ["kn", "nk"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [*FLOATING, "int64", "int32", "int8", "uint8"])
def test_bits_are_those_of_two_operators_on_any_threads(dtype, shape, order):
    before = facula.get_num_threads()
    c, a, b = arguments(facula, dtype, shape, order)
    transposed = {"out": facula.empty(b.shape[1], a.shape[0], dtype=a.dtype).t()}
    try:
        for threads in (1, 2, 3, 8):
            facula.set_num_threads(threads)
            for use_gelu in (False, True)[: 1 + (dtype in ("float32", "float64"))]:
                for factors in ({}, {"beta": 2, "alpha": 3}, {"beta": 0}, {"alpha": 0}, transposed):
                    fused = facula._addmm_activation(c, a, b, use_gelu=use_gelu, **factors).clone()
                    two = activated(facula, facula.addmm(c, a, b, **factors), use_gelu)
                    assert facula.equal(fused, two), (threads, use_gelu, factors)
    finally:
        facula.set_num_threads(before)


@pytest.mark.parametrize("use_gelu", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATING)
def test_results_are_pytorchs(dtype, shape, use_gelu):
    found = []
    for module in (facula, torch):
        c, a, b = arguments(module, dtype, shape)
        y = module._addmm_activation(c, a, b, beta=0.5, alpha=0.25, use_gelu=use_gelu)
        found.append(y.double().numpy())
    digits = {"float32": 2e-6, "float64": 1e-14, "bfloat16": 2.0**-8, "float16": 2.0**-11}[dtype]
    scale = abs(found[1]).max()
    # PyTorch rounds half types before the activation, too.
    np.testing.assert_allclose(found[0], found[1], rtol=4 * digits, atol=2 * digits * scale)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_types_are_rounded_once(dtype, shape):
    c, a, b = arguments(facula, dtype, shape)
    found = facula._addmm_activation(c, a, b, use_gelu=True).double()
    exact = facula._addmm_activation(c.double(), a.double(), b.double(), use_gelu=True)
    step = 2.0 ** {"bfloat16": -8, "float16": -11}[dtype]
    noise = (1 + shape[2]) ** 0.5 * 2.0**-19  # of sums in float
    assert bool(((found - exact).abs() <= exact.abs() * step * 1.01 + noise).all())


ROWS = {
    "dense": lambda c: c,
    "of a matrix": lambda c: c[None],
    "steps apart": lambda c: c.repeat_interleave(2)[::2],
    "one number": lambda c: c[:1],
    "expanded": lambda c: c[:1].expand(c.shape[0]),
    "negated later": lambda c: facula._neg_view(-c),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_addend_of_one_row_is_as_a_whole_matrix(shape, row):
    c, a, b = arguments(facula, "bfloat16", shape)
    given = row(c)
    whole = given.expand(shape[0], shape[1]).clone()
    wide = facula.empty(shape[0], 2 * shape[1], dtype=a.dtype)
    for options in ({}, {"alpha": 3}, {"beta": 2}, {"out": wide[:, : shape[1]]}):
        wanted = facula.addmm(whole, a, b, **options).clone()
        assert facula.equal(facula.addmm(given, a, b, **options), wanted), options


@pytest.mark.parametrize("use_gelu", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_addend_times_zero_is_not_read(shape, use_gelu):
    c, a, b = arguments(facula, "float32", shape)
    bad = facula.full_like(c, float("nan"))
    fused = facula._addmm_activation(bad, a, b, beta=0, use_gelu=use_gelu)
    assert bool(fused.isfinite().all())
    assert bool(facula._addmm_activation(bad, a, b, use_gelu=use_gelu).isnan().all())


def test_the_result_may_go_where_the_addend_is():
    _, a, b = arguments(facula, "float32", (130, 257, 300))
    c = facula.ones(130, 257)
    wanted = facula._addmm_activation(c, a, b)
    assert facula._addmm_activation(c, a, b, out=c) is c
    assert facula.equal(c, wanted)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PyTorch's own, from its forward mode
@pytest.mark.parametrize("module", [facula, torch])
def test_autograd_and_forward_mode_are_refused_as_by_pytorch(module):
    c, a, b = arguments(module, "float32", (3, 5, 4))
    y = module._addmm_activation(c, a.clone().requires_grad_(), b)
    with pytest.raises(RuntimeError, match="_addmm_activation is not implemented"):
        y.sum().backward()
    with pytest.raises(NotImplementedError, match="_addmm_activation"):
        module.func.jvp(lambda t: module._addmm_activation(t, a, b), (c,), (c,))


def test_autocast_meta_and_batches_as_in_pytorch():
    for module in (facula, torch):
        c, a, b = arguments(module, "float32", (3, 5, 4))
        with module.autocast("cpu", dtype=module.bfloat16):
            assert module._addmm_activation(c, a, b).dtype == module.bfloat16
        y = module._addmm_activation(*(t.to("meta") for t in (c, a, b)), use_gelu=True)
        assert (y.device.type, tuple(y.shape), y.stride()) == ("meta", (3, 5), (5, 1))
        rows = module.stack([a, -a])
        with pytest.warns(UserWarning, match="batching rule"):
            found = module.vmap(module._addmm_activation, (None, 0, None))(c, rows, b)
        for y, x in zip(found, rows, strict=True):
            np.testing.assert_allclose(y, module._addmm_activation(c, x, b), rtol=1e-6)


@pytest.mark.parametrize("factor", [1j, 1e300])
@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("op", ["addmm", "_addmm_activation"])
def test_factors_that_do_not_fit_are_refused(op, name, factor):
    for module in (facula, torch):
        with pytest.raises(RuntimeError, match="without overflow"):
            getattr(module, op)(*arguments(module, "float32", (3, 5, 4)), **{name: factor})
