"""Gradients of complex numbers, first and second order, by PyTorch's convention."""

import facula
import numpy as np
import pytest
import torch
from samples import load_ops
from samples.checks import cases, dtype_name, is_tensor, tensors_of, to_array
from samples.common import find, make_arguments, seed_of, split_marked

OPS = [op for op in load_ops() if op.grad and not op.nondeterministic]


def _random(lib, like, rng):
    values = rng.uniform(-1, 1, tuple(like.shape))
    if like.is_complex():
        values = values + 1j * rng.uniform(-1, 1, tuple(like.shape))
    return lib.from_numpy(np.asarray(values).astype(dtype_name(like)))


def _arrays(grads, like):
    """Gradients as arrays; zeros where there is none."""
    return [
        np.zeros(tuple(x.shape)) if g is None else to_array(g)
        for g, x in zip(grads, like, strict=True)
    ]


def _gradients(lib, op, index, sample):
    """First gradients, and gradients of these; None where nothing is differentiable."""
    args, kwargs = make_arguments(lib, sample, "complex128", seed_of(op, index), grad=True)
    inputs, call = split_marked(sample, args, kwargs, "complex128")
    results = tensors_of(call(find(lib, op.name), inputs)) if inputs else []
    results = [r for r in results if is_tensor(r) and r.requires_grad]
    if not results:
        return None
    rng = np.random.default_rng(0)
    cotangents = [_random(lib, r, rng).requires_grad_() for r in results]
    grads = lib.autograd.grad(results, inputs, cotangents, create_graph=True, allow_unused=True)
    leaves = [*inputs, *cotangents]
    weights = [_random(lib, x, rng) for x in inputs]
    pairs = [
        (g, w) for g, w in zip(grads, weights, strict=True) if g is not None and g.requires_grad
    ]
    second = [None] * len(leaves)
    if pairs:
        roots, along = zip(*pairs, strict=True)
        second = lib.autograd.grad(roots, leaves, along, allow_unused=True)
    return _arrays(grads, inputs) + _arrays(second, leaves)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("op", "dtype"), **cases(OPS, {"complex128"}))
def test_first_and_second_order(op, dtype):
    for index, sample in op.numbered_samples(dtype):
        try:
            wanted = _gradients(torch, op, index, sample)
        except (RuntimeError, NotImplementedError):  # PyTorch has no second derivative
            continue
        if wanted is None:
            continue
        got = _gradients(facula, op, index, sample)
        if got is None:  # a constant: the identity, as the power of 0
            assert not any(w.any() for w in wanted), sample
            continue
        for g, w in zip(got, wanted, strict=True):
            np.testing.assert_allclose(g, w, 1e-6, 1e-7, err_msg=repr(sample))
