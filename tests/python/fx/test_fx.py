"""facula.fx: traced modules compute what the modules do; graphs are edited, checked and run."""

import copy
import operator
import pickle
import sys

import facula
import pytest
from facula import fx, nn
from fx.models import build

CASES = build(facula)
NAMES = [name for name, *_ in CASES]


def same(a, b):
    if isinstance(a, facula.Tensor):
        return facula.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@pytest.mark.parametrize("name, program, inputs", CASES, ids=NAMES)
def test_a_traced_program_computes_the_same(name, program, inputs):
    traced = fx.symbolic_trace(program)
    expected = program(*inputs)
    assert same(traced(*inputs), expected)
    assert same(fx.Interpreter(traced).run(*inputs), expected)
    assert same(fx.Transformer(traced).transform()(*inputs), expected)
    assert same(copy.deepcopy(traced)(*inputs), expected)
    traced.graph.lint()
    if isinstance(program, nn.Module):
        assert same(pickle.loads(pickle.dumps(traced))(*inputs), expected)


def test_gradients_reach_the_parameters():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    fx.symbolic_trace(model)(facula.ones(1, 2)).sum().backward()
    assert model[0].weight.grad is not None


def test_nodes_are_replaced_and_dead_code_goes():
    traced = fx.symbolic_trace(lambda x: facula.add(facula.relu(x), x))
    for node in list(traced.graph.nodes):
        if node.target is facula.relu:
            with traced.graph.inserting_after(node):
                other = traced.graph.call_function(facula.tanh, node.args)
            node.replace_all_uses_with(other)
            assert not node.users and other.users
    assert traced.graph.eliminate_dead_code() and not traced.graph.eliminate_dead_code()
    traced.recompile()
    x = facula.randn(3)
    assert facula.equal(traced(x), x.tanh() + x)
    assert "relu" not in traced.code and "facula.tanh(x)" in traced.code


def test_modules_are_swapped_by_name():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert traced.add_submodule("extra.act", nn.Sigmoid())
    for node in traced.graph.nodes:
        if node.op == "call_module" and isinstance(traced.get_submodule(node.target), nn.ReLU):
            node.target = "extra.act"
    traced.delete_all_unused_submodules()
    traced.recompile()
    names = [name for name, _ in traced.named_modules()]
    assert "extra.act" in names and "1" not in names
    assert traced(facula.ones(1, 2)).min() > 0


def test_what_depends_on_values_is_refused():
    with pytest.raises(fx.proxy.TraceError, match="control flow"):
        fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)
    with pytest.raises(fx.proxy.TraceError, match="cannot be iterated"):
        fx.symbolic_trace(lambda x: [y for y in x])
    with pytest.raises(RuntimeError, match="len of x must be known"):
        fx.symbolic_trace(lambda x: len(x))


def test_concrete_arguments_are_fixed():
    def program(x, flag):
        return x if flag else -x

    traced = fx.symbolic_trace(program, concrete_args={"flag": False})
    assert facula.equal(traced(facula.ones(2), False), -facula.ones(2))
    with pytest.raises(AssertionError, match="flag was traced with the value False"):
        traced(facula.ones(2), True)


def test_errors_of_graphs_name_the_node():
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(operator.neg, (x,))
    graph.output(y)
    with pytest.raises(RuntimeError, match="must have no users; got output"):
        graph.erase_node(y)
    with pytest.raises(ValueError, match="must be callable; got str"):
        graph.call_function("neg", (x,))
    y.append(x)
    with pytest.raises(RuntimeError, match="neg uses x before"):
        graph.lint()
    with pytest.raises(RuntimeError, match="no attribute missing"):
        other = fx.Graph(owning_module=nn.Module())
        other.call_module("missing")
        other.lint()


def test_tracing_leaves_modules_as_they_were():
    call, get = nn.Module.__call__, nn.Module.__getattr__
    fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    assert nn.Module.__call__ is call and nn.Module.__getattr__ is get
    assert not fx._symbolic_trace.is_fx_tracing()


def test_arguments_cannot_be_changed_in_place():
    graph = fx.Graph()
    node = graph.call_function(facula.cat, ([graph.placeholder("x")],), {"dim": 0})
    for change in (lambda: node.args[0].append(1), lambda: node.kwargs.update(dim=1)):
        with pytest.raises(NotImplementedError, match="replaced whole"):
            change()
    node.update_kwarg("dim", 1)
    assert node.kwargs == {"dim": 1}


def test_a_trace_leaves_modules_their_own_look_up():
    class Derived(nn.Linear):
        pass

    model = Derived(2, 2)
    fx.symbolic_trace(model)
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name))
    try:
        weight = model.weight
    finally:
        sys.setprofile(None)
    assert weight.shape == (2, 2) and "__getattr__" not in called
