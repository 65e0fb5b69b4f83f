"""Derivatives of the table's operators, first and second order, against differences."""

import facula
import pytest
from facula.autograd.gradcheck import gradcheck, gradgradcheck
from samples import load_ops
from samples.checks import assert_same_values, cases, is_tensor, tensors_of
from samples.common import find, make_arguments, seed_of, split_marked

MOST_ELEMENTS = 600
SMOOTH = [op for op in load_ops() if op.grad and not op.nondeterministic]
CASES = cases(SMOOTH, {"float64", "complex128"})


def _prepared(op, index, dtype):
    """(function of the differentiated tensors, those tensors); None where there are none."""
    sample = op.samples[index]
    args, kwargs = make_arguments(facula, sample, dtype, seed_of(op, index), grad=True)
    inputs, call = split_marked(sample, args, kwargs, dtype)
    if not inputs or sum(t.numel() for t in inputs) > MOST_ELEMENTS:
        return None
    function = find(facula, op.name)

    def smooth(*tensors):
        results = tensors_of(call(function, tensors))
        return tuple(r for r in results if is_tensor(r) and r.requires_grad)

    return (smooth, inputs) if smooth(*inputs) else None


def _each_prepared(op, dtype):
    for index, sample in op.numbered_samples(dtype):
        prepared = _prepared(op, index, dtype)
        if prepared:
            yield sample, *prepared


def _inplace_form(op, name):
    """The function as an in-place change of a copy, or None."""
    if "." in name or not op.inplace or not hasattr(facula.Tensor, name + "_"):
        return None
    return lambda self, *rest: getattr(self.clone(), name + "_")(*rest)


@pytest.mark.parametrize(("op", "dtype"), **CASES)
def test_gradient(op, dtype, full):
    """The gradient of each sample is that of differences."""
    checked = 0
    for sample, function, inputs in _each_prepared(op, dtype):
        checked += 1
        assert gradcheck(function, inputs, fast_mode=not full), sample
    if not checked and dtype == "float64":
        pytest.fail("no sample has a gradient: say grad=False if the operator has none")


@pytest.mark.parametrize(
    ("op", "dtype"), **cases([o for o in SMOOTH if o.gradgrad], {"float64", "complex128"})
)
def test_second_gradient(op, dtype, full):
    """The gradient's gradient, through create_graph."""
    for sample, function, inputs in _each_prepared(op, dtype):
        assert gradgradcheck(function, inputs, fast_mode=not full, atol=1e-4), sample


@pytest.mark.parametrize(("op", "dtype"), **cases(SMOOTH, {"float32", "bfloat16"}))
def test_gradient_keeps_dtype_and_shape(op, dtype):
    """A gradient has its input's dtype, shape and device, and nothing undefined comes back."""
    for sample, function, inputs in _each_prepared(op, dtype):
        results = function(*inputs)
        grads = facula.autograd.grad(
            results, inputs, [facula.ones_like(r) for r in results], allow_unused=True
        )
        for grad, x in zip(grads, inputs, strict=True):
            if grad is not None:
                assert (grad.dtype, grad.shape, grad.device) == (x.dtype, x.shape, x.device), sample


@pytest.mark.parametrize(
    "op", [o for o in SMOOTH if _inplace_form(o, o.name)], ids=lambda o: o.name
)
def test_inplace_gradient(op):
    """The in-place form has the function's gradient."""
    change = _inplace_form(op, op.name)
    for index, sample in op.numbered_samples("float64"):
        made = make_arguments(facula, sample, "float64", seed_of(op, index), grad=True)
        args, kwargs = made
        if kwargs or not args or not is_tensor(args[0]) or not args[0].requires_grad:
            continue
        expected = find(facula, op.name)(*args)
        if not is_tensor(expected) or not expected.requires_grad:
            continue
        if expected.shape != args[0].shape or expected.dtype != args[0].dtype:
            continue
        leaves = [t for t in tensors_of(args) if is_tensor(t) and t.requires_grad]
        weight = facula.ones_like(expected)
        wanted = facula.autograd.grad(expected, leaves, weight, allow_unused=True)
        got = facula.autograd.grad(change(*args), leaves, weight, allow_unused=True)
        for g, w in zip(got, wanted, strict=True):
            assert (g is None) == (w is None), sample
            if g is not None:
                assert_same_values(g, w, what=repr(sample))
