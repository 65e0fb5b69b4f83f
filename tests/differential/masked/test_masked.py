"""facula.masked beside torch.masked: values, dtypes, gradients, errors, MaskedTensor."""

import facula
import pytest
import torch
from masked_cases import CALLS, COMPLEX, ERRORS, FLOATING, MASKS, called, tensors

pytestmark = [
    pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors"),
    pytest.mark.filterwarnings("ignore:It is not recommended to create a MaskedTensor"),
]


def as_torch(t):
    """The values in PyTorch's tensor of the same dtype."""
    dtype = getattr(torch, str(t.dtype).removeprefix("facula."))
    return torch.tensor(t.detach().tolist(), dtype=dtype)


def assert_same(ours, theirs, **tolerances):
    converted = as_torch(ours)
    assert converted.shape == theirs.shape and converted.dtype == theirs.dtype
    torch.testing.assert_close(converted, theirs.detach(), equal_nan=True, **tolerances)


@pytest.mark.parametrize("index", range(len(CALLS)), ids=[f"{c[0]}{c[2]}{c[3]}" for c in CALLS])
def test_results(index):
    name, dtypes, args, options = CALLS[index]
    for dtype in dtypes:
        for mask in MASKS:
            given = (name, dtype, mask, args, options)
            assert_same(called(facula, *given), called(torch, *given))


def gradient(lib, name, dtype, mask, args, options):
    x, k = tensors(lib, dtype, mask)
    x.requires_grad_()
    result = getattr(lib.masked, name)(x, *args, mask=k, **options)
    # Weights that differ; those of nan and inf are left out.
    result = result.reshape(-1)
    weights = lib.arange(1, result.numel() + 1).to(result.dtype)
    finite = lib.isfinite(result.detach())
    (result * weights)[finite].sum().abs().backward()
    return x.grad


@pytest.mark.parametrize(
    "name", "sum prod mean amax var norm logsumexp cumsum softmax log_softmax median".split()
)
def test_gradients(name):
    args = (2.0, 1) if name == "norm" else (1,)
    for dtype in FLOATING if name in ("amax", "softmax", "log_softmax", "median") else COMPLEX:
        for mask in ("full", "row", "none"):
            given = (name, dtype, mask, args, {})
            assert_same(gradient(facula, *given), gradient(torch, *given))


@pytest.mark.parametrize("dtype", FLOATING)
def test_logaddexp(dtype):
    for own in MASKS:
        for other in ("full", "none"):
            found = []
            for lib in (facula, torch):
                x, k = tensors(lib, dtype, own)
                _, k2 = tensors(lib, dtype, other)
                found.append(lib.masked.logaddexp(x, -x, input_mask=k, other_mask=k2))
            assert_same(*found)


@pytest.mark.parametrize("label, call, error", ERRORS, ids=[e[0] for e in ERRORS])
def test_errors(label, call, error):
    for lib in (facula, torch):
        x = lib.arange(6.0).reshape(2, 3)
        with pytest.raises(error):
            call(lib.masked, x, lib.tensor(MASKS["full"]))


# What is done to a MaskedTensor `a`; `b` has the same mask, `x` is a plain tensor.
EXPRESSIONS = {
    "add": lambda lib, a, b, x: a + b,
    "number first": lambda lib, a, b, x: 2 * a,
    "plain tensor": lambda lib, a, b, x: x * a,
    "broadcasting": lambda lib, a, b, x: a + lib.ones(2, 2, 3),
    "comparison": lambda lib, a, b, x: a <= b,
    "maximum": lambda lib, a, b, x: lib.maximum(a, b),
    "power": lambda lib, a, b, x: a**2,
    "functions": lambda lib, a, b, x: a.exp().log().sqrt().abs(),
    "clamp": lambda lib, a, b, x: a.clamp(2, 3),
    "in place": lambda lib, a, b, x: a.clone().add_(b).mul_(2).exp_(),
    "isnan": lambda lib, a, b, x: lib.isnan(a),
    "where": lambda lib, a, b, x: lib.where(x > 2, a, b),
    "where plain": lambda lib, a, b, x: lib.where(x > 2, a, x),
    "item": lambda lib, a, b, x: a[0],
    "element": lambda lib, a, b, x: a[0, 0],
    "slice": lambda lib, a, b, x: a[:, 1:],
    "mask index": lambda lib, a, b, x: a[x > 2],
    "view": lambda lib, a, b, x: a.view(3, 2),
    "transpose": lambda lib, a, b, x: a.t(),
    "expand": lambda lib, a, b, x: a.expand(2, 2, 3),
    "unsqueeze": lambda lib, a, b, x: a.unsqueeze(0),
    "flatten": lambda lib, a, b, x: a.flatten(),
    "dtype": lambda lib, a, b, x: a.double(),
    "integers": lambda lib, a, b, x: a.long(),
    "bool": lambda lib, a, b, x: a.bool(),
    "chunk": lambda lib, a, b, x: a.chunk(2)[0],
    "stack": lambda lib, a, b, x: lib.stack([a, b]),
    "cat": lambda lib, a, b, x: lib.cat([a, b]),
    "ones_like": lambda lib, a, b, x: lib.ones_like(a),
    "sum": lambda lib, a, b, x: a.sum(),
    "sum of rows": lambda lib, a, b, x: lib.sum(a, 1),
    "kept": lambda lib, a, b, x: a.sum(dim=1, keepdim=True),
    "mean": lambda lib, a, b, x: a.mean(0),
    "amax": lambda lib, a, b, x: a.amax((0, 1)),
    "argmin": lambda lib, a, b, x: a.argmin(1),
    "prod": lambda lib, a, b, x: lib.prod(a),
    "var": lambda lib, a, b, x: a.var(1),
    "all": lambda lib, a, b, x: (a > 0).all(1),
    "softmax": lambda lib, a, b, x: a.softmax(1),
    "data": lambda lib, a, b, x: a.data,
    "detach": lambda lib, a, b, x: a.detach(),
    "get_data": lambda lib, a, b, x: a.get_data(),
    "to_tensor": lambda lib, a, b, x: a.to_tensor(7),
}


def pair(lib, requires_grad=False):
    x = lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    k = lib.tensor(MASKS["full"])
    make = lib.masked.masked_tensor
    return make(x, k, requires_grad), make(x * 3, k), x


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_masked_tensors(name):
    ours, theirs = (EXPRESSIONS[name](lib, *pair(lib)) for lib in (facula, torch))
    assert type(ours).__name__ == type(theirs).__name__
    assert str(ours.dtype) == str(theirs.dtype).replace("torch", "facula")
    assert repr(ours) == repr(theirs)


# Without those whose result is integers, or whose derivative PyTorch's class lacks.
@pytest.mark.parametrize(
    "name",
    "add power functions item slice view transpose dtype sum kept mean amax prod var softmax "
    "get_data to_tensor".split(),
)
def test_gradients_of_masked_tensors(name):
    found = []
    for lib in (facula, torch):
        a, b, x = pair(lib, requires_grad=True)
        result = EXPRESSIONS[name](lib, a, b, x)
        (result if result.ndim == 0 else result.sum()).backward()
        found.append(repr(a.grad).replace("-0.0000", " 0.0000"))
    assert found[0] == found[1]


PRINTED = [
    ([1.0, 123456.789, -2.5e9], [True, True, False]),
    ([1, 123456789012], [False, True]),
    ([float("nan"), float("inf")], [True, True]),
    ([[[1.0], [2.0]]], [[[True], [False]]]),
    (3.5, True),
    (3.5, False),
    ([True, False], [True, False]),
]


@pytest.mark.parametrize("data, mask", PRINTED)
def test_printing(data, mask):
    ours, theirs = (
        lib.masked.masked_tensor(lib.tensor(data), lib.tensor(mask)) for lib in (facula, torch)
    )
    assert repr(ours) == repr(theirs)
