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


@pytest.mark.eager("arguments of put-off calls live on")
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


# --- sums of gradients that backward may add to


def _doubling(see):
    """A Function of factor 2 whose backward shows its buffers to `see`, which may add to them."""

    class Doubling(facula.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * n

        @staticmethod
        def backward(ctx, gradient):
            return see(ctx.input_grad_buffers, gradient * 2), None

    return Doubling


def test_backward_adds_to_what_has_come_before():
    """The sum of an earlier producer is there, and adding to it is all that is needed."""
    shown = []

    def see(buffers, gradient):
        shown.append([None if b is None else b.tolist() for b in buffers])
        if buffers[0] is None:
            return gradient
        buffers[0].add_(gradient)
        return None

    x = facula.ones(2, requires_grad=True)
    (_doubling(see).apply(x, 2).sum() + (x * 5).sum()).backward()
    assert shown == [[[5.0, 5.0], None]]
    assert x.grad.tolist() == [7.0, 7.0]
    h = x * 1
    total = _doubling(see).apply(h, 2).sum() + (h * 5).sum()
    assert facula.autograd.grad(total, x)[0].tolist() == [7.0, 7.0]
    assert shown[1] == [[5.0, 5.0], None]
    x.grad = None
    _doubling(see).apply(x, 2).sum().backward()
    assert shown[2] == [None, None]
    assert x.grad.tolist() == [2.0, 2.0]


def test_buffers_that_others_hold_are_not_shown():
    """A gradient that flows to two inputs belongs to neither."""
    shown = []

    def see(buffers, gradient):
        shown.append(buffers[0])
        return gradient

    x = facula.ones(2, requires_grad=True)
    y = facula.ones(2, requires_grad=True)
    total = _doubling(see).apply(x, 2)
    (total + (x + y)).backward(facula.ones(2))
    assert shown == [None]
    assert x.grad.tolist() == [3.0, 3.0]


def test_buffers_are_there_in_a_plain_pass_only():
    """Not outside of backward, with create_graph, in anomaly mode or with post hooks."""
    x = facula.ones(2, requires_grad=True)
    out = _doubling(lambda buffers, gradient: gradient).apply(x, 2)
    with pytest.raises(RuntimeError, match="only while"):
        out.grad_fn.input_grad_buffers  # noqa: B018
    with pytest.raises(RuntimeError, match="create_graph"):
        facula.autograd.grad(out.sum(), x, create_graph=True)
    with (
        facula.autograd.set_detect_anomaly(True),
        pytest.raises(RuntimeError, match="anomaly"),
        pytest.warns(UserWarning),
    ):
        facula.autograd.grad(out.sum(), x, retain_graph=True)
    out.grad_fn.register_hook(lambda *gradients: None)
    with pytest.raises(RuntimeError, match="post hooks"):
        facula.autograd.grad(out.sum(), x, retain_graph=True)


def test_no_pass_inside_of_one_that_shows_buffers():
    """A pass inside could run over the sum that is shown."""

    def see(buffers, gradient):
        z = facula.ones(1)
        with facula.enable_grad():
            inner = (z.requires_grad_() * 2).sum()
        inner.backward()
        return gradient

    x = facula.ones(2, requires_grad=True)
    total = _doubling(see).apply(x, 2).sum() + (x * 5).sum()
    with pytest.raises(RuntimeError, match="input_grad_buffers"):
        total.backward()
    facula.ones(1, requires_grad=True).sum().backward()


@pytest.mark.eager("arguments of put-off calls live on")
def test_boxed_gradients_can_be_let_go():
    """backward gets one list, and what it drops is gone."""
    gone = []

    class Boxed(facula.autograd.Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x, y):
            return x * 2, y * 3

        @staticmethod
        def backward(ctx, gradients):
            assert isinstance(gradients, list)
            assert len(gradients) == 2
            watched = weakref.ref(gradients[0])
            first = gradients.pop(0) * 2
            gone.append(watched() is None)
            return first, gradients[0] * 3

    x = facula.ones(2, requires_grad=True)
    y = facula.ones(2, requires_grad=True)
    a, b = Boxed.apply(x, y)
    ((a * a).sum() + (b * b).sum()).backward()
    assert x.grad.tolist() == [8.0, 8.0]
    assert y.grad.tolist() == [18.0, 18.0]
    assert gone == [True]
    assert [g.tolist() for g in Boxed.apply(x, y)[0].grad_fn.apply(x, y)] == [[2.0] * 2, [3.0] * 2]


def test_layout_of_new_gradients():
    """As the leaf's; or the gradient's own, where that is allowed."""

    p = facula.ones(2, 3, 4).permute(2, 0, 1).requires_grad_()
    strides = []
    for enforced in (True, False):
        p.grad = None
        with facula.autograd.enforce_grad_layout_policy(enforced):
            p.exp().backward(facula.rand(4, 2, 3))
        strides.append(p.grad.stride())
    assert strides == [p.stride(), (6, 3, 1)]
    p.grad = None
    with facula.autograd.enforce_grad_layout_policy(False):
        p.sum().backward()  # repeated in memory: no gradient that could be added to
    assert p.grad.stride() == p.stride()
    facula.autograd.enforce_grad_layout_policy(False)
    facula.autograd.enforce_grad_layout_policy(True)
    assert facula.autograd.enforce_grad_layout_policy().clone().mode


def test_memory_budgets_need_a_compiled_region():
    """Checked, and refused in eager code, as in PyTorch."""
    budget = facula.autograd.graph.region_activation_memory_budget
    for value, error in (("x", TypeError), (2, ValueError), (0.5, RuntimeError)):
        with pytest.raises(error, match="region_activation_memory_budget"):
            budget(value)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("several", [False, True])
def test_a_gradient_from_python_becomes_grad_without_a_copy(kept, several):
    """Unless Python keeps it."""
    keeper, places = [], []

    class Doubling(facula.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * n

        @staticmethod
        def backward(ctx, gradient):
            made = gradient * 2
            places.append(made.data_ptr())
            if kept:
                keeper.append(made)
            return (made, None) if several else made

    x = facula.ones(3, requires_grad=True)
    if several:
        Doubling.apply(x, 2).sum().backward()
    else:

        class One(Doubling):
            @staticmethod
            def forward(ctx, x):
                return x * 2

        One.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    assert (x.grad.data_ptr() == places[0]) != kept
    if kept:
        x.grad.zero_()
        assert keeper[0].tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "switch",
    [
        facula.autograd.set_grad_enabled,
        facula.autograd.set_multithreading_enabled,
        facula.autograd.enforce_grad_layout_policy,
    ],
)
def test_switches_take_bools_alone(switch):
    """A wrong value changes nothing; a right one is taken back where the switch was a context."""
    before = switch._get()
    for wrong in ("x", 1, None):
        with pytest.raises(TypeError, match="must be bool, not"):
            switch(wrong)
    with switch(not before):
        assert switch._get() is not before
    assert switch._get() is before
    switch(not before)(lambda: None)
    assert switch._get() is before
