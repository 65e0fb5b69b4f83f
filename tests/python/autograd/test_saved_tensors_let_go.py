"""`maybe_clear_saved_tensors`: what a backward that has read its tensors may let go."""

import facula
import pytest


class Doubled(facula.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.maybe_clear_saved_tensors()  # no pass runs: nothing goes
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        ctx.maybe_clear_saved_tensors()
        return 2 * gradient * facula.ones_like(x)


@pytest.mark.parametrize("retain_graph", [False, True])
def test_saved_tensors_go_unless_the_pass_keeps_the_graph(retain_graph):
    x = facula.ones(2, requires_grad=True)
    y = Doubled.apply(x)
    y.sum().backward(retain_graph=retain_graph)
    y.grad_fn.maybe_clear_saved_tensors()
    if retain_graph:
        assert y.grad_fn.saved_tensors[0] is x
        return
    with pytest.raises(RuntimeError, match="a second time"):
        y.grad_fn.saved_tensors  # noqa: B018


def test_function_and_context_show_the_names():
    names = ("maybe_clear_saved_tensors", "needs_input_grad")
    for cls in (facula.autograd.Function, facula.autograd.function.BackwardCFunction):
        assert all(hasattr(cls, name) for name in names)
