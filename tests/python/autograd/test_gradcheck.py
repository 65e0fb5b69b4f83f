"""gradcheck and gradgradcheck: what they find, in every mode, and what they refuse."""

import facula
import pytest
from facula.autograd import Function, gradcheck, gradgradcheck


def sine(scale_backward=1.0, scale_forward=1.0, number=False):
    """sin(x) with derivatives scaled by factors, 1 where they are right; `number` reads a value."""

    class Sine(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.sin()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            if number:
                gradient.sum().item()
            return gradient * x.cos() * scale_backward

        @staticmethod
        def jvp(ctx, tangent):
            (x,) = ctx.saved_tensors
            if number:
                tangent.sum().item()
            return tangent * x.cos() * scale_forward

    return Sine.apply


def point(*shape, dtype=facula.double):
    """An input: numbers from 0.1 on."""
    count = max(1, facula.Size(shape).numel())
    return (facula.arange(1, count + 1).reshape(shape) / 10).to(dtype).requires_grad_()


MODES = {
    "backward": {},
    "fast": {"fast_mode": True},
    "forward": {"check_forward_ad": True, "check_backward_ad": False},
    "fast forward": {"check_forward_ad": True, "check_backward_ad": False, "fast_mode": True},
    "batched": {"check_batched_grad": True},
    "batched forward": {
        "check_forward_ad": True,
        "check_backward_ad": False,
        "check_batched_forward_grad": True,
    },
}
FUNCTIONS = {
    "right": (sine(), set()),
    "wrong backward": (sine(scale_backward=1.1), {"backward", "fast", "batched"}),
    "wrong forward": (sine(scale_forward=1.1), {"forward", "fast forward", "batched forward"}),
    "reads a number": (sine(number=True), {"batched", "batched forward"}),
    "several results": (lambda x: (x.sin(), x.cos()), set()),
    "a constant result first": (lambda x: (x.detach() * 0, x.sin()), set()),
    "an integer result": (lambda x: (x.sin(), x.long()), set()),
    "complex result": (lambda x: facula.complex(x, x).exp(), set()),
    "changes in place": (lambda x: x.clone().mul_(2), set()),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_modes(name, mode):
    function, wrong = FUNCTIONS[name]
    found = gradcheck(function, (point(3),), raise_exception=False, **MODES[mode])
    assert found == (mode not in wrong)


SECOND = {
    "reverse over reverse": {},
    "fast": {"fast_mode": True},
    "forward over reverse": {"check_fwd_over_rev": True, "check_rev_over_rev": False},
    "both": {"check_fwd_over_rev": True},
}


@pytest.mark.parametrize("mode", SECOND)
@pytest.mark.parametrize("dtype", [facula.double, facula.complex128])
def test_second_derivatives(mode, dtype):
    def cube(x, y):
        return x * x * x * y

    inputs = point(2, dtype=dtype), point(2, dtype=dtype)
    assert gradgradcheck(cube, inputs, **SECOND[mode])


def test_second_derivatives_by_forward_mode_are_found_wrong():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x**3

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 3 * sine(scale_forward=2)(ctx.saved_tensors[0])

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * 3 * ctx.saved_tensors[0] ** 2

    with pytest.raises(RuntimeError, match="differs"):
        gradgradcheck(Cube.apply, (point(2),), check_fwd_over_rev=True, check_rev_over_rev=False)


WRONG = {
    "no mode": (AssertionError, {"check_backward_ad": False}),
    "batched without backward": (
        AssertionError,
        {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
    ),
    "batched without forward": (AssertionError, {"check_batched_forward_grad": True}),
}


@pytest.mark.parametrize("name", WRONG)
def test_options_that_do_not_go_together(name):
    error, options = WRONG[name]
    with pytest.raises(error):
        gradcheck(facula.sin, (point(2),), **options)


def test_no_way_to_the_second_derivative():
    with pytest.raises(AssertionError):
        gradgradcheck(facula.sin, (point(2),), check_rev_over_rev=False)


def test_functions_must_give_tensors():
    with pytest.raises(AttributeError, match="int"):
        gradcheck(lambda x: 3, (point(2),))


def test_single_precision_is_warned_of():
    with pytest.warns(UserWarning, match="double precision"):
        gradcheck(lambda x: x * 2, (point(2, dtype=facula.float32),), raise_exception=False)
