"""Forward mode: every operator's tangent against its gradient, and the rules of dual tensors."""

import math
import random

import facula
import facula.autograd.forward_ad as fw
import pytest
from samples import load_ops
from samples.checks import cases, is_tensor, tensors_of
from samples.common import find, make_arguments, seed_of, split_marked

MOST_ELEMENTS = 600
SMOOTH = [op for op in load_ops() if op.grad and not op.nondeterministic]


def _random_like(t, rng):
    values = [rng.choice((-1, 1)) * rng.uniform(0.25, 1) for _ in range(2 * t.numel())]
    if t.is_complex():
        values = [complex(a, b) for a, b in zip(values[::2], values[1::2], strict=True)]
    return facula.tensor(values[: t.numel()], dtype=t.dtype).reshape(t.shape)


def _inner(a, b):
    """The inner product of two tensors as real vectors."""
    product = (a.detach() * b.detach().conj()).resolve_conj().sum()
    return product.real.item() if product.is_complex() else product.item()


def _numbers(result):
    return [r for r in tensors_of(result) if is_tensor(r)]


def _tangents(function, inputs, directions):
    with fw.dual_level():
        duals = [fw.make_dual(x.detach(), t) for x, t in zip(inputs, directions, strict=True)]
        return [fw.unpack_dual(r).tangent for r in _numbers(function(*duals))]


def _check_transposes(function, inputs, what):
    """<u, J t> is <J^T u, t> for random u and t; False where nothing is differentiable."""
    results = _numbers(function(*inputs))
    wanted = [i for i, r in enumerate(results) if r.requires_grad]
    if not wanted:
        return False
    rng = random.Random(0)
    directions = [_random_like(x, rng) for x in inputs]
    cotangents = [_random_like(results[i], rng) for i in wanted]
    grads = facula.autograd.grad(
        [results[i] for i in wanted], inputs, cotangents, allow_unused=True
    )
    expected = sum(_inner(g, t) for g, t in zip(grads, directions, strict=True) if g is not None)
    found = _tangents(function, inputs, directions)
    for i, t in enumerate(found):
        if t is not None:
            assert (t.shape, t.dtype) == (results[i].shape, results[i].dtype), what
    pairs = [(u, found[i]) for u, i in zip(cotangents, wanted, strict=True)]
    got = sum(_inner(t, u) for u, t in pairs if t is not None)
    if not (math.isnan(got) and math.isnan(expected)):
        assert math.isclose(got, expected, rel_tol=1e-6, abs_tol=1e-6), what
    return True


@pytest.mark.parametrize(("op", "dtype"), **cases(SMOOTH, {"float64", "complex128"}))
def test_tangent_is_the_transpose_of_the_gradient(op, dtype):
    for index, sample in op.numbered_samples(dtype):
        args, kwargs = make_arguments(facula, sample, dtype, seed_of(op, index), grad=True)
        inputs, call = split_marked(sample, args, kwargs, dtype)
        if not inputs or sum(t.numel() for t in inputs) > MOST_ELEMENTS:
            continue
        _check_transposes(lambda *ts, call=call: call(find(facula, op.name), ts), inputs, sample)


def _dual(values, tangent):
    return fw.make_dual(facula.tensor(values), facula.tensor(tangent))


def _tangent(t):
    found = fw.unpack_dual(t).tangent
    return None if found is None else found.tolist()


@pytest.mark.parametrize(
    ("change", "tangent"),
    [
        (lambda x, y: x.mul_(y), [5.0, 8.0]),
        (lambda x, y: x.mul_(x), [4.0, 8.0]),
        (lambda x, y: x.add_(y, alpha=2), [4.0, 4.0]),
        (lambda x, y: x.copy_(y), [1.0, 1.0]),
        (lambda x, y: x.zero_(), [0.0, 0.0]),
        (lambda x, y: x.uniform_(), [0.0, 0.0]),
        (lambda x, y: x.detach(), None),
        (lambda x, y: x > 0, None),
        (lambda x, y: facula.zeros_like(x), None),
        (lambda x, y: x.clone().zero_(), [0.0, 0.0]),
        (lambda x, y: x[1:].mul_(3), [6.0]),
        (lambda x, y: (x.view(2, 1).squeeze_(1).mul_(2), x)[1], [4.0, 4.0]),
        (lambda x, y: x.unsqueeze_(0).squeeze_(0), [2.0, 2.0]),
        (lambda x, y: facula.cat([facula.ones(1), x, y]), [0.0, 2.0, 2.0, 1.0, 1.0]),
        (lambda x, y: x.sort(descending=True)[0], [2.0, 2.0]),
        (lambda x, y: x.sort(descending=True)[1], None),
    ],
)
def test_tangents_follow(change, tangent):
    with fw.dual_level():
        x, y = _dual([1.0, 2.0], [2.0, 2.0]), _dual([3.0, 6.0], [1.0, 1.0])
        x = x.clone()
        if tangent == [5.0, 8.0]:
            tangent = [2 * 3.0 + 1.0, 2 * 6.0 + 2.0]
        assert _tangent(change(x, y)) == tangent


def test_views_share_tangents_with_their_base():
    with fw.dual_level():
        base = facula.zeros(2, 2)
        row, flat = base[0], base.view(-1)
        row.add_(_dual([1.0, 1.0], [3.0, 4.0]))
        assert _tangent(base) == [[3.0, 4.0], [0.0, 0.0]]
        assert _tangent(flat) == [3.0, 4.0, 0.0, 0.0]
        flat.mul_(2)
        assert _tangent(row) == [6.0, 8.0]
        assert _tangent(fw.unpack_dual(base).primal) is None


def test_no_grad_and_switches():
    with fw.dual_level():
        x = _dual([1.0], [1.0])
        with facula.no_grad():
            assert _tangent(x * x) == [2.0]
        with facula.inference_mode():
            assert _tangent(x * x) is None
        with fw._set_fwd_grad_enabled(False):
            assert _tangent(x * x) is None
        kept = x * 2
    with fw.dual_level():
        assert _tangent(kept) is None


def test_reverse_over_forward_and_forward_over_reverse():
    x = facula.tensor([1.0, 2.0], requires_grad=True)
    with fw.dual_level():
        tangent = fw.unpack_dual(fw.make_dual(x, facula.ones(2)) ** 3).tangent
        (second,) = facula.autograd.grad(tangent.sum(), x)
        assert second.tolist() == [6.0, 12.0]
        dual = fw.make_dual(x.detach(), facula.ones(2)).requires_grad_()
        for create_graph in (False, True):
            (first,) = facula.autograd.grad((dual**3).sum(), dual, create_graph=create_graph)
            assert _tangent(first) == [6.0, 12.0]
        (saved_result,) = facula.autograd.grad(dual.exp().sum(), dual)
        assert saved_result.tolist() == _tangent(saved_result)


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (RuntimeError, "cannot be nested", lambda x: fw.enter_dual_level()),
        (RuntimeError, "must have its tensor", lambda x: fw.make_dual(x, facula.ones(5))),
        (ValueError, "primal must be", lambda x: fw.make_dual(x.long(), x)),
        (ValueError, "tangent must be", lambda x: fw.make_dual(x, x.long())),
        (RuntimeError, "tangent already", lambda x: fw.make_dual(fw.make_dual(x, x), x)),
        (RuntimeError, "tangent of its own", lambda x: fw.make_dual(x, fw.make_dual(x, x))),
        (RuntimeError, "only level is 0", lambda x: fw.make_dual(x, x, level=3)),
        (RuntimeError, "only the last level", lambda x: fw.exit_dual_level(level=3)),
        (TypeError, "must be a Tensor", lambda x: fw.unpack_dual(3)),
        (
            NotImplementedError,
            "out= has no derivative",
            lambda x: facula.add(fw.make_dual(x, x), 1, out=facula.ones(2)),
        ),
    ],
)
def test_errors(error, text, call):
    with fw.dual_level(), pytest.raises(error, match=text):
        call(facula.ones(2))


def test_errors_without_a_level():
    with pytest.raises(RuntimeError, match="no level of forward mode"):
        fw.make_dual(facula.ones(1), facula.ones(1))
    with pytest.raises(RuntimeError, match="no level is on"):
        fw.exit_dual_level()
    assert fw.unpack_dual(facula.ones(1)).tangent is None


class Product(facula.autograd.Function):
    """x * y, with both derivatives by hand."""

    @staticmethod
    def forward(ctx, x, y, scale):
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        ctx.scale = scale
        return x * y * scale

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y * ctx.scale, grad * x * ctx.scale, None

    @staticmethod
    def jvp(ctx, tx, ty, scale):
        assert scale is None
        x, y = ctx.saved_tensors
        return (tx * y + x * ty) * ctx.scale


def test_custom_function():
    with fw.dual_level():
        x = _dual([2.0], [1.0])
        out = Product.apply(x, facula.tensor([3.0]), 10.0)
        assert out.item() == 60.0 and _tangent(out) == [30.0]
        wrong = type("Wrong", (Product,), {"jvp": staticmethod(lambda ctx, *t: (t[0], t[0]))})
        with pytest.raises(RuntimeError, match="must return a tangent"):
            wrong.apply(x, x, 1.0)
        none = type("None_", (Product,), {"jvp": facula.autograd.Function.jvp})
        with pytest.raises(NotImplementedError, match="jvp"):
            none.apply(x, x, 1.0)
