"""Graphs: tracing, printing, running, dead code; joint graphs; fake and meta tensors."""

import facula
import pytest
from facula import _C
from facula._trace import trace, trace_joint


def test_trace_and_run():
    graph = trace(lambda x, y: (x + y) * 2, [facula.ones(2), facula.ones(2)])
    graph.lint()
    assert "aten::add.Tensor(%0, %1, alpha=1)" in str(graph)
    (out,) = graph.run([facula.tensor([1.0, 2.0]), facula.tensor([10.0, 20.0])])
    assert out.tolist() == [22.0, 44.0]
    with pytest.raises(RuntimeError, match="expected 2 inputs"):
        graph.run([facula.ones(2)])


def test_constants_lists_and_several_results():
    k = facula.tensor([5.0])
    graph = trace(lambda x: facula.cat([x.split(1)[1], k]), [facula.ones(2)])
    assert "constant float32[1]" in str(graph)
    assert graph.run([facula.tensor([1.0, 2.0])])[0].tolist() == [2.0, 5.0]


def test_dead_code():
    def f(x):
        x * 3
        return x + 1

    graph = trace(f, [facula.ones(2)])
    assert [name for name, _ in graph.nodes] == ["aten::mul.Tensor", "aten::add.Tensor"]
    graph.eliminate_dead_code()
    assert [name for name, _ in graph.nodes] == ["aten::add.Tensor"]


def test_joint_graph():
    x = facula.tensor([1.0, 2.0, 3.0], requires_grad=True)
    w = facula.tensor([4.0, 5.0, 6.0], requires_grad=True)
    graph = trace_joint(lambda a, b: (a * b).sum(), [x, w])
    graph.lint()
    graph.eliminate_dead_code()
    a, b = facula.tensor([7.0, 8.0, 9.0]), facula.tensor([1.0, 1.0, 2.0])
    out, ga, gb = graph.run([a, b])
    assert out.item() == 33.0
    assert ga.tolist() == b.tolist() and gb.tolist() == a.tolist()


def test_joint_graph_of_in_place_program():
    def f(x):
        y = x.clone()
        y[0].mul_(3)
        return (y * y).sum()

    graph = trace_joint(f, [facula.ones(2, requires_grad=True)])
    for name, _ in graph.nodes:
        assert not name.split("::")[1].split(".")[0].endswith("_"), str(graph)
    out, g = graph.run([facula.tensor([1.0, 2.0])])
    assert out.item() == 13.0 and g.tolist() == [18.0, 4.0]


def test_fake_tensors():
    real = facula.ones(2, 3)
    with _C._FakeMode(True):
        x = _C._make_fake(facula.ones(2, 3))
        y = (x + 1).t().contiguous()
        z = facula.zeros(4, device="cpu")
        y.add_(1)
    assert y.shape == (3, 2) and y.stride() == (2, 1) and y.device.type == "cpu"
    assert z.device.type == "cpu" and _C._is_fake(z) and _C._is_fake(y)
    with pytest.raises(RuntimeError, match="no memory"):
        y.tolist()
    with _C._FakeMode(False), pytest.raises(AssertionError, match="FakeTensor"):
        x + real


def test_tracing_over_fake_tensors():
    with _C._FakeMode(False):
        graph = trace(lambda x: (x * 2).sum(), [_C._make_fake(facula.ones(3))])
    assert graph.run([facula.tensor([1.0, 2.0, 3.0])])[0].item() == 12.0


def test_meta():
    x = facula.ones(2, 3, device="meta")
    y = (x + 1).sum(0).unsqueeze(-1)
    assert y.shape == (3, 1) and y.device.type == "meta"
