"""The table of samples through a compiled call: eager's bits, strides and gradients."""

import facula
import pytest
from facula import _C
from samples import load_ops
from samples.checks import each, geometry_of, tensors_of
from samples.common import Sample, find, make_arguments, seed_of

OPS = load_ops()


def bits(value):
    """The elements of every tensor in a result, as bytes; of other layouts their text."""
    found = []
    for t in tensors_of(value):
        if not isinstance(t, facula.Tensor) or t.layout != facula.strided or t.is_quantized:
            found.append(str(t))
            continue
        whole = t.detach().resolve_conj().resolve_neg().flatten().clone()
        found.append(bytes(whole.view(facula.uint8).tolist()) if whole.numel() else b"")
    return found


def with_gradients(call, args, kwargs):
    """What the call gives, and the gradients of its floating inputs where there are any."""
    facula.manual_seed(1)
    result = call(*args, **kwargs)
    roots = [t for t in tensors_of(result) if isinstance(t, facula.Tensor) and t.requires_grad]
    leaves = [
        t for t in tensors_of((args, kwargs)) if isinstance(t, facula.Tensor) and t.requires_grad
    ]
    if not roots or not leaves:
        return result, []
    cotangents = [facula.ones_like(t) for t in roots]
    return result, facula.autograd.grad(roots, leaves, cotangents, allow_unused=True)


def own_arguments(op, sample, dtype, index):
    """The arguments in memory of our own: what reads NumPy's is not put off."""
    args, kwargs = make_arguments(
        facula, sample, dtype, seed_of(op, index), grad=op.grad and "float" in dtype
    )

    def own(leaf, _):
        plain = isinstance(leaf, facula.Tensor) and leaf.layout == facula.strided
        if not plain or leaf.is_quantized:
            return leaf
        return leaf.detach().clone().requires_grad_(leaf.requires_grad)

    made = Sample(*args, **kwargs).map(own)
    return made.args, made.kwargs


def run(op, call, sample, dtype, index, around):
    args, kwargs = own_arguments(op, sample, dtype, index)
    try:
        result, gradients = around(with_gradients, call, args, kwargs)
    except Exception as error:
        return type(error).__name__, str(error)
    if op.nondeterministic:
        return geometry_of(result)
    return geometry_of(result), bits(result), bits([g for g in gradients if g is not None])


@pytest.mark.parametrize("op", **each(OPS))
def test_a_compiled_call_gives_the_same_bits(op):
    call = find(facula, op.name)
    for dtype in op.dtype_names():
        for index, sample in op.numbered_samples(dtype):
            eager = run(op, call, sample, dtype, index, lambda f, *a: f(*a))
            compiled = run(op, call, sample, dtype, index, _C._recorded)
            assert compiled == eager, f"{dtype} {sample}"
