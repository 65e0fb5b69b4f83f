"""The forward and backward graphs of aot_function read as PyTorch's."""

import warnings

import facula
import pytest
import torch
from facula.functorch import compile as ours
from functorch import compile as theirs


def _build(torch):
    F = torch.nn.functional

    def leaf(*shape):
        return (torch.arange(float(torch.Size(shape).numel())).reshape(shape) / 7).requires_grad_()

    def fixed(*shape):
        return leaf(*shape).detach()

    def writes(x, y):
        y.add_(1)
        return x * y

    def softmax_and_mask(x):
        return F.softmax(x, -1).masked_fill(x > 1, 0.0)

    def nest(d):
        return {"product": d["x"] * d["y"]}

    def batch_norm(statistics=2, training=True):
        def normed(x, w, b, *running):
            mean, var = running or (None, None)
            return F.batch_norm(x, mean, var, w, b, training)

        return normed, [leaf(2, 3, 4), leaf(3), leaf(3), *[fixed(3) + 1 for _ in range(statistics)]]

    return {
        "batch_norm": batch_norm(),
        "batch_norm_for_use": batch_norm(training=False),
        "batch_norm_without_statistics": batch_norm(statistics=0),
        "pointwise": (lambda x: x.tanh() * x, [leaf(2, 3)]),
        "softmax": (softmax_and_mask, [leaf(2, 3)]),
        "layer_norm": (
            lambda x, w, b: F.layer_norm(x, (3,), w, b),
            [leaf(2, 3), leaf(3), leaf(3)],
        ),
        "attention": (lambda q: F.scaled_dot_product_attention(q, q, q), [leaf(1, 2, 3, 4)]),
        "convolution": (
            lambda x, w: F.conv2d(x, w, padding=1).relu(),
            [fixed(1, 2, 4, 4), leaf(3, 2, 3, 3)],
        ),
        "written_argument": (writes, [leaf(2, 3), fixed(2, 3)]),
        "view_of_argument": (lambda x: (x.view(-1), x * 2), [leaf(2, 3)]),
        "argument_returned": (lambda x, y: (x, y * x), [leaf(2, 3), fixed(2, 3)]),
        "no_gradient": (lambda x: x * 2 + 1, [fixed(2, 3)]),
        "several_results": (lambda x: (x.sin(), x.cos().detach(), x > 0), [leaf(2, 3)]),
        "constants": (lambda x: x * torch.ones(3) + torch.tensor(2.0), [leaf(2, 3)]),
        "nest": (nest, [{"x": leaf(2, 3), "y": fixed(2, 3)}]),
        "embedding": (lambda w: F.embedding(torch.tensor([0, 1]), w).sum(), [leaf(3, 2)]),
    }


def _codes(torch, module, function, args, partition):
    codes = []

    def keep(graph, inputs):
        codes.append(graph.code)
        return module.make_boxed_func(graph.forward)

    compiled = module.aot_function(function, keep, partition_fn=getattr(module, partition))
    results = compiled(*args)
    results = results.values() if isinstance(results, dict) else results
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    losses = [r.sum() for r in results if r.requires_grad]
    if losses:
        sum(losses).backward()
    return [code.replace("facula.", "torch.") for code in codes]


# Not so for the minimum cut: ours counts bytes alone, PyTorch's keeps what is dear to make again.
DIFFERENT = {
    "attention": "PyTorch runs the forward operator once more in the backward, for nothing",
    "convolution": "the sizes of a bias that is not there",
}


def _marked(name):
    reason = DIFFERENT.get(name)
    return (
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=reason)) if reason else name
    )


@pytest.mark.parametrize("name", map(_marked, _build(facula)))
def test_graphs_read_as_pytorch_s(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = _codes(facula, ours, *_build(facula)[name], "default_partition")
        other = _codes(torch, theirs, *_build(torch)[name], "default_partition")
    assert mine == other
