"""Names of nodes: `grad_fn.name()` of every operator's results, and of in-place forms."""

import warnings

import facula
import pytest
import torch
from samples import load_public_ops
from samples.checks import cases, is_tensor, tensors_of
from samples.common import find, make_arguments, seed_of, split_marked


class Known:
    """Why an operator's nodes are called otherwise, and which: {(ours, PyTorch's)}."""

    def __init__(self, reason, *pairs):
        self.reason = reason
        self.pairs = set(pairs)


ONE_CONVOLUTION = Known(
    "a complex convolution is one node with one kernel; PyTorch's is made of three real ones and "
    "two dozen nodes that take it apart and put it together",
    ("ConvolutionBackward0", "AddBackward0"),
)
DIFFERENTIABLE_IN_PLACE = (
    "has its derivative in place too; PyTorch's node for the in-place form raises in backward"
)
# What is called otherwise than in PyTorch, and better so for who uses it.
KNOWN = {
    "vander": Known(
        "joins its columns, half the nodes of PyTorch's writes into slices, and vmap needs no loop",
        ("CatBackward0", "torch::autograd::CopySlices"),
    ),
    "triangular_solve": Known(
        "a composite of linalg.solve_triangular, whose derivative serves both",
        ("LinalgSolveTriangularBackward0", "TriangularSolveBackward0"),
        ("TransposeBackward0", "TriangularSolveBackward0"),
    ),
    "norm_except_dim": Known(
        "one norm over several dimensions, where PyTorch copies an inner dimension to the front "
        "and makes a matrix first",
        ("LinalgVectorNormBackward0", "ViewBackward0"),
        ("LinalgVectorNormBackward0", "NormBackward0"),
    ),
    "special.ndtr": Known(
        "one node, and exact where 1 + erf(x / sqrt 2) has no digits left: PyTorch's float32 is 0 "
        "from -5.5 on",
        ("SpecialNdtrBackward0", "MulBackward1"),
    ),
    "rms_norm": Known(
        "one node with one kernel each way, as PyTorch has on GPUs; six of them on its CPU",
        ("FusedRmsNormBackward0", "MulBackward0"),
    ),
    "bernoulli": Known(
        "the form with p has the gradient of the form without, zero; PyTorch's raises in backward",
        ("BernoulliBackward1", "torch::autograd::NotImplemented"),
    ),
    "conv1d": ONE_CONVOLUTION,
    "conv2d": ONE_CONVOLUTION,
    "conv_transpose1d": ONE_CONVOLUTION,
    "conv_transpose2d": ONE_CONVOLUTION,
}
KNOWN |= dict.fromkeys(
    "lstm gru rnn_tanh rnn_relu".split(),
    Known(
        "all steps of a layer are one node with one kernel; in PyTorch those of padded LSTMs in "
        "float32 alone, and every step of the others is several nodes",
    ),
)
KNOWN_IN_PLACE = {
    "addbmm_": Known(
        "raises where the result has another shape than self; PyTorch gives self another shape",
        (None, "AddbmmBackward0"),
    ),
    "fill_diagonal_": Known(
        "one node; PyTorch's writes to views make one for each part of the diagonal",
        ("FillDiagonalBackward0", "torch::autograd::CopySlices"),
    ),
    "asinh_": Known(DIFFERENTIABLE_IN_PLACE, ("AsinhBackward0", "AsinhBackward1")),
    "acosh_": Known(DIFFERENTIABLE_IN_PLACE, ("AcoshBackward0", "AcoshBackward1")),
    "atanh_": Known(DIFFERENTIABLE_IN_PLACE, ("AtanhBackward0", "AtanhBackward1")),
}
# No pairs: any names, all of another kind than PyTorch's.
FOREACH = Known(
    "every tensor of the list has a node of its own, so that the gradient of one result runs and "
    "keeps nothing of the others; PyTorch has one node for the list",
)
OPS = [op for op in load_public_ops() if {"float32", "complex64"} & set(op.dtype_names())]


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


def each(ours, theirs):
    """Pairs of names, result by result."""
    if isinstance(ours, list):
        return zip(ours, theirs, strict=True)
    return [(ours, theirs)]


def different_pairs(read, op, dtype):
    """The pairs (ours, PyTorch's) of names that differ in any sample."""
    found = set()
    for index, _ in op.numbered_samples(dtype):
        theirs = quietly(lambda index=index: read(torch, op, index, dtype))
        ours = quietly(lambda index=index: read(facula, op, index, dtype))
        if theirs is not None and ours != theirs:
            found |= {(a, b) for a, b in each(ours, theirs) if a != b}
    return found


def compare(read, op, dtype, known):
    """Both libraries give the same names for all samples, but for the pairs that are known."""
    if known is None:
        assert not different_pairs(read, op, dtype)
    elif known.pairs:
        assert different_pairs(read, op, dtype) <= known.pairs


@pytest.mark.parametrize(("op", "dtype"), **cases(OPS, {"float32", "complex64"}))
def test_results(op, dtype):
    """Nodes of results are called as PyTorch's are."""
    known = FOREACH if op.short_name.startswith("_foreach_") else KNOWN.get(op.name)
    compare(names, op, dtype, known)


WITH_IN_PLACE = [
    op for op in OPS if hasattr(torch.Tensor, in_place(op)) and hasattr(facula.Tensor, in_place(op))
]


@pytest.mark.parametrize(("op", "dtype"), **cases(WITH_IN_PLACE, {"float32", "complex64"}))
def test_in_place(op, dtype):
    """Nodes of tensors that were changed in place are called as PyTorch's are."""
    compare(name_in_place, op, dtype, KNOWN_IN_PLACE.get(in_place(op)))


@pytest.mark.parametrize("name", [n for n, known in KNOWN.items() if known.pairs])
def test_known_differences_are_there(name):
    """The table lists no difference that has gone."""
    ops = [op for op in OPS if op.name == name]
    found = [
        different_pairs(names, op, dtype)
        for op in ops
        for dtype in {"float32", "complex64"} & set(op.dtype_names())
    ]
    assert set().union(*found) == KNOWN[name].pairs


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


def leaf(lib, *sizes):
    """A leaf of ones."""
    return lib.ones(sizes, requires_grad=True)


GRAPHS = {
    "linear of a vector": lambda m: m.nn.functional.linear(leaf(m, 4), leaf(m, 5, 4), leaf(m, 5)),
    "linear of a matrix": lambda m: m.nn.functional.linear(
        leaf(m, 2, 4), leaf(m, 5, 4), leaf(m, 5)
    ),
    "linear of a batch": lambda m: m.nn.functional.linear(
        leaf(m, 2, 3, 4), leaf(m, 5, 4), leaf(m, 5)
    ),
    "linear of nothing": lambda m: m.nn.functional.linear(
        leaf(m, 2, 0, 4), leaf(m, 5, 4), leaf(m, 5)
    ),
    "linear of a slice": lambda m: m.nn.functional.linear(
        leaf(m, 2, 3, 8)[..., :4], leaf(m, 5, 4), leaf(m, 5)
    ),
    "linear without bias": lambda m: m.nn.functional.linear(leaf(m, 2, 3, 4), leaf(m, 5, 4)),
    "linear by a vector": lambda m: m.nn.functional.linear(leaf(m, 2, 4), leaf(m, 4)),
    "vector @ matrix": lambda m: leaf(m, 3) @ leaf(m, 3, 4),
    "batch @ vector": lambda m: leaf(m, 2, 3, 4) @ leaf(m, 4),
    "batch @ matrix": lambda m: leaf(m, 2, 3, 4) @ leaf(m, 4, 5),
    "batch @ batch": lambda m: leaf(m, 6, 1, 3, 4) @ leaf(m, 2, 4, 5),
    "batch @ batch of one": lambda m: leaf(m, 2, 3, 4) @ leaf(m, 1, 4, 5),
    "batch in another order": lambda m: leaf(m, 4, 3, 2).permute(2, 1, 0) @ leaf(m, 2, 4, 5),
    "inner": lambda m: m.inner(leaf(m, 2, 5, 3), leaf(m, 4, 3)),
    "reshape": lambda m: leaf(m, 3, 4).reshape(12),
    "reshape of another order": lambda m: leaf(m, 3, 4).t().reshape(4, 3, 1),
    "reshape that copies": lambda m: leaf(m, 3, 4).t().reshape(12),
    "flatten of a slice": lambda m: leaf(m, 3, 4)[:, ::2].flatten(),
    "einsum": lambda m: m.einsum("ij,jk->ki", leaf(m, 2, 3), leaf(m, 3, 4)),
    "cross entropy": lambda m: m.nn.functional.cross_entropy(
        leaf(m, 3, 4), m.tensor([0, 1, 2]), label_smoothing=0.1
    ),
    "dist": lambda m: m.dist(leaf(m, 3), leaf(m, 3)),
    "renorm": lambda m: m.renorm(leaf(m, 2, 3), 2, 0, 1.0),
    "block_diag": lambda m: m.block_diag(leaf(m, 2, 3), leaf(m, 2)),
    "convolution, padded unevenly": lambda m: m.nn.functional.conv1d(
        leaf(m, 1, 2, 5), leaf(m, 3, 2, 4), padding="same"
    ),
    "x ** 2": lambda m: leaf(m, 3) ** 2,
    "2 ** x": lambda m: 2 ** leaf(m, 3),
    "x % 2": lambda m: leaf(m, 3) % 2,
    "x * 2": lambda m: leaf(m, 3) * 2,
    "outer": lambda m: m.outer(leaf(m, 2), leaf(m, 3)),
    "cov": lambda m: m.cov(leaf(m, 2, 3)),
    "tensordot of vectors": lambda m: m.tensordot(leaf(m, 3), leaf(m, 3), 1),
    "gradient": lambda m: m.gradient(leaf(m, 5))[0],
    "add.Scalar": lambda m: m.ops.aten.add.Scalar(leaf(m, 3), 2),
    "sub.Scalar": lambda m: m.ops.aten.sub.Scalar(leaf(m, 3), 2),
    "mul.Scalar": lambda m: m.ops.aten.mul.Scalar(leaf(m, 3), 2),
    "div.Scalar": lambda m: m.ops.aten.div.Scalar(leaf(m, 3), 2),
}


def graph(node, depth=3):
    """Names of a node and of those that it leads to."""
    if node is None or depth == 0:
        return node and node.name()
    return node.name(), *(graph(n, depth - 1) for n, _ in node.next_functions)


@pytest.mark.filterwarnings("ignore:Initializing zero")
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs(name):
    """The nodes behind the last are PyTorch's too, and what is no view there is none here."""
    ours, theirs = (GRAPHS[name](lib) for lib in (facula, torch))
    assert graph(ours.grad_fn) == graph(theirs.grad_fn)
    assert ours._is_view() == theirs._is_view()
    assert ours.stride() == theirs.stride()
