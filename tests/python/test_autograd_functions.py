"""Custom Functions: what goes beyond the programs of the differential suite."""

import gc
import weakref

import facula
import pytest
from facula.autograd import Function, grad, gradcheck, gradgradcheck


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 3 * x * x * gradient


def test_derivatives_of_a_function_agree_with_differences():
    x = facula.tensor([0.5, -1.5], dtype=facula.double, requires_grad=True)
    assert gradcheck(Cube.apply, (x,), check_batched_grad=True, check_grad_dtypes=True)
    assert gradgradcheck(Cube.apply, (x,))


def test_the_context_keeps_nothing_but_what_was_saved():
    x = facula.ones(2, requires_grad=True)
    middle = x * 2
    alive = weakref.ref(middle)
    y = Cube.apply(middle * 1)
    del middle
    gc.collect()
    assert alive() is None
    y.sum().backward()


def test_a_third_derivative():
    x = facula.tensor(2.0, requires_grad=True)
    first = grad(Cube.apply(x), x, create_graph=True)[0]
    second = grad(first, x, create_graph=True)[0]
    assert (first.item(), second.item(), grad(second, x)[0].item()) == (12, 12, 6)


def test_saved_tensor_hooks_see_what_a_function_saves():
    seen = []
    x = facula.ones(2, requires_grad=True)

    def pack(t):
        seen.append("pack")
        return t

    with facula.autograd.graph.saved_tensors_hooks(pack, lambda t: seen.append("unpack") or t):
        y = Cube.apply(x)
    y.sum().backward()
    assert seen == ["pack", "unpack"]


def test_defaults_of_forward_reach_setup_context():
    class Scaled(Function):
        @staticmethod
        def forward(x, by=3.0):
            return x * by

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.by = inputs[1]

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.by, None

    x = facula.ones(1, requires_grad=True)
    Scaled.apply(x).backward()
    assert x.grad.item() == 3


def test_gradcheck_finds_a_wrong_gradient():
    class Wrong(Cube):
        @staticmethod
        def backward(ctx, gradient):
            return 2 * ctx.saved_tensors[0] * gradient

    x = facula.tensor([0.5, -1.5], dtype=facula.double, requires_grad=True)
    for fast in (False, True):
        assert not gradcheck(Wrong.apply, (x,), fast_mode=fast, raise_exception=False)


def test_gradcheck_finds_a_backward_that_takes_no_undefined_gradient():
    class NeedsIt(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient.clone() if gradient is not None else facula.ones(2).double()

    x = facula.tensor([0.5, -1.5], dtype=facula.double, requires_grad=True)
    with pytest.raises(RuntimeError, match="undefined cotangent"):
        gradcheck(NeedsIt.apply, (x,))
    assert gradcheck(NeedsIt.apply, (x,), check_undefined_grad=False)
