"""functionalize: the same results and changes of inputs, by operators that change nothing."""

import facula
import pytest
from facula import _C, func
from facula._trace import trace

B = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def _both_ways(f):
    """Results of f and what became of its input: eager, functionalized."""
    a, b = facula.tensor(B), facula.tensor(B)
    return (f(a), a), (func.functionalize(f)(b), b)


def _view_then_change(x):
    row, flat = x[0], x.view(-1)
    row.add_(10)
    flat[1:3].mul_(2)
    x.t().sub_(1)
    return row * 1


def _squeezed(x):
    y = x.clone().unsqueeze(0)
    y.squeeze_(0).transpose_(0, 1)
    y.add_(1)
    return y


def _out(x):
    y = facula.empty(2, 3)
    facula.add(x, x, out=y)
    return y


def _filled(x):
    x.zero_()
    x[1].fill_(3)
    x.copy_(x + facula.ones(3))
    return x.clone()


@pytest.mark.parametrize(
    "f",
    [
        _view_then_change,
        _squeezed,
        _out,
        _filled,
        lambda x: x.mul_(2),
        lambda x: x.clone().view(-1).mul_(2),
    ],
)
def test_same_as_eager(f):
    (out, given), (out_f, given_f) = _both_ways(f)
    assert out.tolist() == out_f.tolist()
    assert given.tolist() == given_f.tolist()


def test_the_program_changes_nothing():
    graph = trace(_view_then_change, [facula.tensor(B)], functionalize=True)
    assert graph.nodes
    for name, _ in graph.nodes:
        assert not name.split("::")[1].split(".")[0].endswith("_"), str(graph)
    out, changed = graph.run([facula.tensor(B)])
    eager = facula.tensor(B)
    assert out.tolist() == _view_then_change(eager).tolist()
    assert changed.tolist() == eager.tolist()


def test_inputs_that_share_memory():
    def f(x, y):
        y.add_(100)
        return x + 0

    a, b = facula.tensor(B), facula.tensor(B)
    assert func.functionalize(f)(b, b[1]).tolist() == f(a, a[1]).tolist()
    assert a.tolist() == b.tolist()


def test_gradients_pass_through():
    def f(x):
        y = x * 2
        y[0].mul_(3)
        return (y * y).sum()

    a = facula.tensor(B, requires_grad=True)
    b = facula.tensor(B, requires_grad=True)
    f(a).backward()
    func.functionalize(f)(b).backward()
    assert a.grad.tolist() == b.grad.tolist()


def test_storage_resized_to_nothing_and_back():
    def f(x):
        n = x.numel() * 4
        kept = x.clone()
        facula.ops.aten.resize_storage_bytes_(x, 0)
        with pytest.raises(RuntimeError, match="0 bytes"):
            x + 1
        facula.ops.aten.resize_storage_bytes_(x, n)
        x.copy_(kept)
        return x + 1

    a = facula.tensor(B)
    assert func.functionalize(f)(a).tolist() == [[v + 1 for v in row] for row in B]
    assert a.tolist() == B


def test_results_that_are_inputs_keep_their_identity():
    a = facula.tensor(B)
    assert func.functionalize(lambda x: x.add_(1))(a) is a


def test_errors():
    with pytest.raises(NotImplementedError):
        func.functionalize(lambda x: x, remove="mutations_and_views")
    with pytest.raises(RuntimeError, match="remove must be"):
        func.functionalize(lambda x: x, remove="all")
    outside = facula.ones(3)
    with pytest.raises(RuntimeError, match="not an input"):
        func.functionalize(lambda x: outside.add_(x))(facula.ones(3))
    assert not _C._is_functional_tensor(outside)
