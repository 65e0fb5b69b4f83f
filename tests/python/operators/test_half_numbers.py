"""Numbers beside half types: factors and divisors are exact, terms and alphas are rounded first."""

import facula
import pytest

HALVES = [facula.bfloat16, facula.float16]


def rounded(number, dtype):
    return facula.tensor(number, dtype=dtype).item()


# name: the call with a tensor and a number, whether the number is used as it is
CASES = {
    "mul": (lambda t, s: t * s, True),
    "mul from the left": (lambda t, s: s * t, True),
    "mul_": (lambda t, s: t.clone().mul_(s), True),
    "mul of a transposed matrix": (lambda t, s: t.view(8, -1).t() * s, True),
    "mul of every second": (lambda t, s: t[::2] * s, True),
    "mul by a tensor of one element": (lambda t, s: t * facula.tensor(s), True),
    "mul by a double": (lambda t, s: t * facula.tensor(s, dtype=facula.float64), True),
    "_foreach_mul": (lambda t, s: facula._foreach_mul([t], s)[0], True),
    "div": (lambda t, s: t / s, True),
    "div rounded down": (lambda t, s: t.div(s, rounding_mode="floor"), True),
    "div towards zero": (lambda t, s: t.div(s, rounding_mode="trunc"), True),
    "floor_divide": (lambda t, s: t // s, True),
    "add": (lambda t, s: t + s, False),
    "sub": (lambda t, s: t - s, False),
    "add by alpha": (lambda t, s: t.add(t, alpha=s), False),
    "sub by alpha": (lambda t, s: t.sub(t, alpha=s), False),
    "remainder": (lambda t, s: t.remainder(s), False),
    "softshrink": (lambda t, s: facula.nn.functional.softshrink(t, s), False),
    "hardshrink": (lambda t, s: facula.nn.functional.hardshrink(t, s), False),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("number", [0.3, 0.9, 1e-3])
@pytest.mark.parametrize("name", CASES)
def test_numbers_are_exact_or_rounded_as_the_function_says(name, number, dtype):
    function, exact = CASES[name]
    t = facula.linspace(-3, 3, 320).to(dtype)
    wide = function(t.float(), number if exact else rounded(number, dtype))
    assert facula.equal(function(t, number), wide.to(dtype))


def test_a_factor_beyond_the_type_does_not_overflow():
    small = facula.tensor([1e-3, -2e-3], dtype=facula.float16)
    assert (small * 70000.0).tolist() == (small.float() * 70000.0).half().tolist()


def test_a_first_operand_of_one_element_is_rounded():
    t = facula.linspace(-3, 3, 64).bfloat16()
    wide = rounded(0.9, facula.bfloat16) * t.float()
    assert facula.equal(facula.tensor(0.9) * t, wide.bfloat16())


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_an_alpha_beyond_the_type_is_refused(dtype):
    t = facula.ones(3, dtype=dtype)
    with pytest.raises(RuntimeError, match="without overflow"):
        t.add(t, alpha=1e39)
