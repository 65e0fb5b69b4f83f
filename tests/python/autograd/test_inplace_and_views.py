"""Derivatives where tensors change in place, overlap in memory, or are views of what changes."""

import facula
import facula.nn.functional as F
import pytest
from facula.autograd import grad
from facula.autograd.functional import hessian
from facula.autograd.gradcheck import gradcheck, gradgradcheck

CHANGES = {
    "pow_": lambda t: t.pow_(3),
    "sin_": lambda t: t.sin_(),
    "square_": lambda t: t.square_(),
    "mul_": lambda t: t.mul_(t.detach() + 1).mul_(3),
    "div_": lambda t: (t.add_(3)).div_(2).reciprocal_(),
    "tanh_": lambda t: t.tanh_(),
    "elu_": F.elu_,
    "celu_": F.celu_,
    "selu_": F.selu_,
    "silu": lambda t: F.silu(t, inplace=True),
    "mish": lambda t: F.mish(t, inplace=True),
    "hardswish": lambda t: F.hardswish(t, inplace=True),
}
PURE = {
    "pow_": lambda t: t.pow(3),
    "sin_": lambda t: t.sin(),
    "square_": lambda t: t.square(),
    "mul_": lambda t: t * (t.detach() + 1) * 3,
    "div_": lambda t: ((t + 3) / 2).reciprocal(),
    "tanh_": lambda t: t.tanh(),
    "elu_": F.elu,
    "celu_": F.celu,
    "selu_": F.selu,
    "silu": F.silu,
    "mish": F.mish,
    "hardswish": F.hardswish,
}


def numbers(*values, requires_grad=True):
    return facula.tensor(values, dtype=facula.double, requires_grad=requires_grad)


@pytest.mark.parametrize("name", CHANGES)
def test_hessian_of_a_change(name):
    x = numbers(0.5, -0.3, 1.25)
    wanted = hessian(lambda t: PURE[name](t).sum(), x)
    assert facula.allclose(hessian(lambda t: CHANGES[name](t.clone()).sum(), x), wanted)

    def of_view(t):
        whole = facula.cat([t, t])
        CHANGES[name](whole[3:])
        return whole.sum()

    assert facula.allclose(hessian(of_view, x), wanted)


@pytest.mark.parametrize("change", [F.relu_, facula.Tensor.sigmoid_, facula.Tensor.exp_])
@pytest.mark.parametrize("view", [lambda t: t[1:], lambda t: t.view(3, 1), lambda t: t.t()])
def test_a_saved_result_of_a_changed_view(change, view):
    """The result is saved; its history is the base's, not that of the operator inside of it."""
    pure = {F.relu_: F.relu}.get(change) or getattr(facula, change.__name__.rstrip("_"))
    x = numbers(0.5, -0.3, 2.0)

    def changed(t):
        whole = t * 1
        change(view(whole))
        return whole.pow(2).sum()

    def plain(t):
        whole = t * 1
        flat = facula.zeros(3, dtype=facula.bool)
        view(flat).fill_(True)
        return facula.where(flat, pure(whole), whole).pow(2).sum()

    assert facula.allclose(hessian(changed, x), hessian(plain, x))


def test_a_saved_result_of_a_changed_view_of_another_dtype():
    x = numbers(0.5, -0.3)

    def changed(t):
        whole = facula.complex(t, t * 2)
        facula.view_as_real(whole).exp_()
        return whole.abs().pow(2).sum()

    wanted = hessian(lambda t: ((2 * t).exp() + (4 * t).exp()).sum(), x)
    assert facula.allclose(hessian(changed, x), wanted)


def test_lists_that_change_in_place():
    x = numbers(0.5, 0.7)
    wanted = hessian(lambda t: (t.sin() + (t * 2).sin()).sum(), x)

    def changed(t):
        parts = [t * 1, t * 2]
        facula._foreach_sin_(parts)
        return (parts[0] + parts[1]).sum()

    assert facula.allclose(hessian(changed, x), wanted)


def test_rrelu_multiplies_by_the_slopes_that_it_drew():
    for inplace in (False, True):
        facula.manual_seed(0)
        x = numbers(-1.0, 2.0, -3.0, -0.5)
        y = F.rrelu(x * 1, 0.2, 0.4, training=True, inplace=inplace)
        slopes = (y / x).detach()
        assert slopes[0] != slopes[2] and slopes[1] == 1
        assert facula.equal(grad(y.sum(), x)[0], slopes)


OVERLAPPING = {
    "expanded": (lambda x: x.expand(5, 5).as_strided((5, 5), (0, 1), 0), 5),
    "expanded, read once": (lambda x: x.expand(5, 5).as_strided((5,), (1,), 0), 1),
    "windows": (lambda x: x.unfold(0, 3, 1).as_strided((5,), (1,), 0), 1),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_as_strided_of_a_tensor_that_overlaps_itself(name):
    """What comes to one place in memory is shared by the elements that are there."""
    take, times = OVERLAPPING[name]
    x = numbers(1, 2, 3, 4, 5)
    y = take(x)
    assert grad(y.sum(), x)[0].tolist() == [times] * 5
    diagonal = hessian(lambda t: take(t).pow(3).sum(), x).diagonal()
    assert facula.allclose(diagonal, 6 * times * x.detach())


def test_second_derivative_of_as_strided_of_a_transposed_tensor():
    x = facula.arange(6, dtype=facula.double).requires_grad_()

    def f(t):
        return t.view(2, 3).t().as_strided((4, 2), (1, 1), 1).pow(3).sum()

    found = hessian(f, x)
    assert facula.equal(found, found.diagonal().diag())
    assert found.diagonal().tolist() == [0, 6, 24, 36, 48, 30]


def test_a_result_that_was_not_asked_for_has_its_place():
    x = facula.arange(16, dtype=facula.double).view(1, 1, 4, 4)
    w = facula.ones(1, 1, 2, 2, dtype=facula.double)
    for along in ((w,), (x,)):
        f = (lambda t: F.conv2d(x, t)) if along[0] is w else (lambda t: F.conv2d(t, w))
        value, tangent = facula.func.jvp(f, along, along)
        assert facula.equal(value, tangent)
    w.requires_grad_()
    assert gradcheck(lambda w: F.conv2d(x, w), (w,), check_forward_ad=True)
    assert gradgradcheck(lambda w: F.conv2d(x, w), (w,), check_fwd_over_rev=True)


def kept_base():
    base = facula.ones(4, requires_grad=True).clone()
    view = base[1:3]
    view.retain_grad()
    return base, view


def test_a_view_keeps_its_grad_when_its_base_changes():
    base, view = kept_base()
    base.mul_(3)
    (base.sum() + view.sum() * 2).backward()
    assert view.grad.tolist() == [2, 2]
    # The gradient is that of the view's present value, not of the one before.
    base, view = kept_base()
    before = view * 5
    base.mul_(3)
    (base.sum() + view.sum() * 2 + before.sum()).backward()
    assert view.grad.tolist() == [2, 2]
    # Another view changes.
    base, view = kept_base()
    base[1:].mul_(3)
    (base.sum() + view.sum() * 2).backward()
    assert view.grad.tolist() == [2, 2] and view.retains_grad
    # Nothing asked for the view again.
    base, view = kept_base()
    base.mul_(3)
    base.sum().backward()
    assert view.grad is None


def test_views_of_inference_tensors_require_no_grad():
    with facula.inference_mode():
        a = facula.ones(3, requires_grad=True)
        inside = a.view(3)
    outside = a[:2]
    for view in (inside, outside):
        assert not view.requires_grad and view.is_inference() and view.is_leaf
    assert (a * 2).requires_grad


# --- gradcheck


def test_gradcheck_moves_inputs_that_the_function_has_from_elsewhere():
    w = numbers(1.0, 2.0)
    assert gradcheck(lambda x: w * w, (w,))
    assert gradcheck(lambda x: w * w, (w,), fast_mode=True)
    assert gradgradcheck(lambda x: w * w * w, (w,))
    assert w.tolist() == [1, 2] and w._version == 0
    net = facula.nn.Linear(2, 2).double()
    x = facula.ones(1, 2, dtype=facula.double)
    assert gradcheck(lambda *p: net(x), tuple(net.parameters()))
    assert gradgradcheck(lambda *p: net(x).pow(2), tuple(net.parameters()))
    # A wrong derivative is still found.
    with pytest.raises(RuntimeError, match="differs"):
        gradcheck(lambda x: w.detach() * w, (w,))


def test_gradcheck_restores_inputs_when_the_function_raises():
    w = numbers(1.0, 2.0)
    calls = []

    def fails(x):
        calls.append(None)
        if len(calls) > 1:
            raise KeyError("later")
        return x * x

    with pytest.raises(KeyError):
        gradcheck(fails, (w,))
    assert w.tolist() == [1, 2]


EMPTY = {
    "no element": lambda x: x[:0],
    "no result": lambda x: (),
    "an empty list": lambda x: [],
    "one of two": lambda x: (x[:0], x * x),
    "a constant": lambda x: facula.ones(2),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_of_empty_results(name, fast_mode):
    assert gradcheck(EMPTY[name], (numbers(1.0, 2.0),), fast_mode=fast_mode)
    assert gradcheck(lambda x: x.sum(), (numbers(),), fast_mode=fast_mode)
