"""Names of nodes: `grad_fn.name()` of every operator's results, and of in-place forms."""

import warnings

import facula
import pytest
import torch
from samples import load_ops
from samples.checks import cases, is_tensor, tensors_of
from samples.common import find, make_arguments, seed_of, split_marked

IN_PARTS = "its parts are not PyTorch's: the last of them is another operator"
LOOP = "works tensor by tensor: the nodes are those of the single operator"
BY_NUMBER = "PyTorch multiplies or divides by a Scalar inside, where a tensor has the other digit"
OWN = "has a derivative of its own, which PyTorch lacks or has on other devices alone"
KNOWN = {
    "vander": IN_PARTS,
    "diff": IN_PARTS,
    "trapezoid": BY_NUMBER,
    "cumulative_trapezoid": BY_NUMBER,
    "nn.functional.cross_entropy": BY_NUMBER,
    "special.ndtr": OWN,
    "rms_norm": OWN,
    "bernoulli": OWN,
    "nn.functional.adaptive_avg_pool2d": IN_PARTS,
    "nn.functional.ctc_loss": "lengths that are tensors are not made lists on the CPU",
    "conv1d": "PyTorch adds a bias after some convolutions",
    "conv2d": "PyTorch adds a bias after some convolutions",
    "conv_transpose1d": "PyTorch adds a bias after some convolutions",
    "conv_transpose2d": "PyTorch adds a bias after some convolutions",
}
KNOWN |= dict.fromkeys(
    "lstm gru rnn_tanh rnn_relu".split(),
    "all steps of a layer are one node; in PyTorch those of padded LSTMs in float32 alone",
)
KNOWN |= dict.fromkeys(
    "conv_tbc dist cdist renorm norm_except_dim einsum _trilinear linalg.matrix_power block_diag "
    "linalg.multi_dot chain_matmul nn.functional.kl_div matmul nn.functional.linear kron "
    "nn.functional.pad quantile nanquantile".split(),
    IN_PARTS,
)
KNOWN_IN_PLACE = {
    "addbmm_": "PyTorch's gives self another shape where the result has one",
    "renorm_": IN_PARTS,
    "conj_physical_": IN_PARTS,
    "fill_diagonal_": OWN,
    "asinh_": OWN,
    "acosh_": OWN,
    "atanh_": OWN,
}
OPS = [op for op in load_ops() if {"float32", "complex64"} & set(op.dtype_names())]


def name_of(tensor):
    """The name of the node that made a tensor, or None."""
    return None if tensor.grad_fn is None else tensor.grad_fn.name()


def quietly(call):
    """The result of a call; None where it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception:  # what PyTorch refuses has no names to compare
            return None


def names(lib, op, index, dtype):
    """Names of the nodes of all results of one sample."""
    args, kwargs = make_arguments(lib, op.samples[index], dtype, seed_of(op, index), grad=True)
    inputs, call = split_marked(op.samples[index], args, kwargs, dtype)
    return [name_of(r) for r in tensors_of(call(find(lib, op.name), inputs)) if is_tensor(r)]


def name_in_place(lib, op, index, dtype):
    """The name that a copy of the first argument has after the in-place form of the operator."""
    args, kwargs = make_arguments(lib, op.samples[index], dtype, seed_of(op, index), grad=True)
    changed = args[0].clone()
    getattr(changed, in_place(op))(*args[1:], **kwargs)
    return name_of(changed)


def in_place(op):
    """The name of the operator's in-place method."""
    return f"{op.short_name.rstrip('_')}_"


def compare(read, op, dtype, known):
    """Both libraries give the same names for all samples, or this is known not to be so."""
    different = {}
    for index, sample in op.numbered_samples(dtype):
        theirs = quietly(lambda index=index: read(torch, op, index, dtype))
        ours = quietly(lambda index=index: read(facula, op, index, dtype))
        if theirs is not None and ours != theirs:
            different[repr(sample)] = ours, theirs
    if different and known:
        pytest.xfail(known)
    assert not different


@pytest.mark.parametrize(("op", "dtype"), **cases(OPS, {"float32", "complex64"}))
def test_results(op, dtype):
    """Nodes of results are called as PyTorch's are."""
    known = LOOP if op.short_name.startswith("_foreach_") else KNOWN.get(op.name)
    compare(names, op, dtype, known)


WITH_IN_PLACE = [
    op for op in OPS if hasattr(torch.Tensor, in_place(op)) and hasattr(facula.Tensor, in_place(op))
]


@pytest.mark.parametrize(("op", "dtype"), **cases(WITH_IN_PLACE, {"float32", "complex64"}))
def test_in_place(op, dtype):
    """Nodes of tensors that were changed in place are called as PyTorch's are."""
    compare(name_in_place, op, dtype, KNOWN_IN_PLACE.get(in_place(op)))


EXPRESSIONS = {
    "1 - x": lambda x: 1 - x,
    "x - 1": lambda x: x - 1,
    "2 / x": lambda x: 2 / x,
    "x ** 2": lambda x: x**2,
    "2 ** x": lambda x: 2**x,
    "x ** x": lambda x: x**x,
    "x.T": lambda x: x.T,
    "x.mT": lambda x: x.mT,
    "x.H": lambda x: x.H,
    "x[0]": lambda x: x[0],
    "x[:, 1:]": lambda x: x[:, 1:],
    "x[x > 0]": lambda x: x[x > 0],
    "x[[0, 1]]": lambda x: x[[0, 1]],
    "copy_": lambda x: x.clone().copy_(x),
    "fill_ by a number": lambda x: x.clone().fill_(2.0),
    "fill_ by a tensor": lambda x: x.clone().fill_(x[0, 0]),
    "zero_": lambda x: x.clone().zero_(),
    "t_": lambda x: x.clone().t_(),
    "squeeze_": lambda x: x.clone().squeeze_(),
    "squeeze_ of one": lambda x: x.clone().squeeze_(0),
    "eq_": lambda x: x.clone().eq_(x),
    "eq_ to a number": lambda x: x.clone().eq_(1),
    "floor_divide_": lambda x: x.clone().floor_divide_(2),
    "logical_not_": lambda x: x.clone().logical_not_(),
    "a changed view": lambda x: x.clone()[0].mul_(2),
    "expand": lambda x: x[0].expand(3, 4),
    "to": lambda x: x.double(),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text):
    """Forms that are no operator of the table."""
    found = []
    for lib in (facula, torch):
        x = (lib.arange(12.0).reshape(3, 4) - 5).requires_grad_()
        found.append(name_of(EXPRESSIONS[text](x)))
    assert found[0] == found[1]


def test_comparisons_in_place_end_the_gradient():
    """What was there before a comparison in place gets a gradient of zero."""
    x = facula.ones(3, requires_grad=True)
    x.clone().eq_(1).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_division_in_place_has_no_derivative():
    """What was there before floor_divide_() gets no wrong gradient."""
    x = facula.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="floor_divide"):
        x.clone().floor_divide_(2).sum().backward()
