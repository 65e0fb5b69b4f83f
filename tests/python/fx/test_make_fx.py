"""make_fx: graphs give what the functions give; modes, tables and errors."""

import facula
import pytest
from facula.fx import GraphModule
from facula.fx.experimental import proxy_tensor
from facula.fx.experimental.proxy_tensor import (
    DecompositionInterpreter,
    disable_proxy_modes_tracing,
    get_isolated_graphmodule,
    get_proxy_mode,
    make_fx,
    selective_decompose,
    thunkify,
)
from facula.utils._pytree import tree_leaves
from fx.make_fx_programs import build
from fx.symbolic_programs import build as build_symbolic

PROGRAMS = build(facula)
SYMBOLIC = build_symbolic(facula)
RANDOM = {"random", "dropout"}


def _targets(graph):
    return [str(n.target) for n in graph.graph.nodes if n.op == "call_function"]


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - RANDOM))
def test_graphs_give_what_functions_give(name):
    function, args = PROGRAMS[name]
    graph = make_fx(function)(*args)
    assert isinstance(graph, GraphModule)
    graph.graph.lint()
    _, again = build(facula)[name]
    expected = tree_leaves(build(facula)[name][0](*again))
    results = tree_leaves(graph(*build(facula)[name][1]))
    assert len(results) == len(expected)
    for a, b in zip(results, expected, strict=True):
        assert facula.equal(a.detach(), b.detach())


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - {"closure", "closure_twice"}))
def test_fake_tensors_give_the_same_graph(name):
    function, args = PROGRAMS[name]
    real, fake = make_fx(function)(*args), make_fx(function, tracing_mode="fake")(*args)
    assert real.code == fake.code


def test_fake_mode_refuses_tensors_from_elsewhere():
    function, args = PROGRAMS["closure"]
    with pytest.raises(AssertionError, match="FakeTensors"):
        make_fx(function, tracing_mode="fake")(*args)
    graph = make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(*args)
    assert facula.equal(graph(*args), function(*args))


def test_a_number_that_depends_on_an_argument_raises():
    with pytest.raises(RuntimeError, match="reads no numbers"):
        make_fx(lambda x: x * x.sum().item())(facula.ones(2))


def test_a_constant_is_known_until_it_is_written():
    def known(x):
        c = facula.tensor(2.0)
        c.add_(1)
        return x * c.item()

    def unknown(x):
        c = facula.tensor(2.0)
        c.add_(x.sum())
        return x * c.item()

    assert make_fx(known)(facula.ones(2))(facula.ones(2)).tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="reads no numbers"):
        make_fx(unknown)(facula.ones(2))


def test_arguments_are_counted_and_modules_traced():
    with pytest.raises(RuntimeError, match="takes 2 arguments; got 1"):
        make_fx(lambda x, y: x)(facula.ones(2))
    module = facula.nn.Linear(2, 3)
    graph = make_fx(module)(facula.ones(4, 2))
    assert [n.name for n in graph.graph.find_nodes(op="placeholder")] == ["arg0_1"]
    assert set(dict(graph.named_parameters())) == {"_param_constant0", "_param_constant1"}
    assert facula.equal(graph(facula.ones(4, 2)), module(facula.ones(4, 2)))


def test_memory_that_is_freed_is_no_other_tensor_s():
    def function(x):
        total = x * 0
        for i in range(20):
            (x + i).sum()  # freed at once: the next may lie where it lay
            total = total + facula.as_tensor([float(i)])
        return total

    x = facula.ones(1)
    graph = make_fx(function)(x)
    assert facula.equal(graph(x), function(x))


def test_modes_are_found_and_switched_off():
    seen = []

    def function(x):
        seen.append(get_proxy_mode())
        with disable_proxy_modes_tracing():
            x.cos()
        return x.sin()

    assert _targets(make_fx(function)(facula.ones(2))) == ["aten.sin.default"]
    assert isinstance(seen[0], proxy_tensor.ProxyTorchDispatchMode) and get_proxy_mode() is None


def test_a_graph_within_a_trace_stands_apart():
    inner, other = [], facula.ones(2)

    def function(x):
        inner.append(get_isolated_graphmodule(lambda a: a.cos(), (other,), {}))
        return x.sin()

    assert _targets(make_fx(function)(facula.ones(2))) == ["aten.sin.default"]
    assert _targets(inner[0]) == ["aten.cos.default"]


def test_graphs_are_taken_apart_when_they_are_run():
    from facula._decomp import get_decompositions
    from facula.fx import Graph

    x = facula.ones(3)
    table = get_decompositions([facula.ops.aten.silu, facula.ops.aten.mish])
    graph = make_fx(lambda x: facula.nn.functional.mish(facula.nn.functional.silu(x)))(x)
    new = Graph()
    expected = DecompositionInterpreter(graph, new, table).run(x)
    made = GraphModule(graph, new)
    assert "aten.silu.default" not in _targets(made) and facula.allclose(made(x), expected)
    some = selective_decompose(
        graph,
        x,
        decomposition=table,
        should_decompose=lambda node: str(node.target) == "aten.silu.default",
    )
    assert _targets(some) == ["aten.sigmoid.default", "aten.mul.Tensor", "aten.mish.default"]


def test_values_in_meta_are_fake():
    graph = make_fx(lambda x: x.t() @ x)(facula.ones(2, 3))
    node = graph.graph.output_node().args[0]
    value = node.meta["val"]
    assert facula._C._is_fake(value) and value.shape == (3, 3)


@pytest.mark.parametrize("name", SYMBOLIC)
def test_graph_with_symbolic_sizes_serves_others(name):
    function, sample, other = SYMBOLIC[name]
    graph = make_fx(function, tracing_mode="symbolic")(*sample)
    for args in (sample, other):
        facula.testing.assert_close(graph(*args), function(*args))


def test_size_that_is_asked_for_is_a_number():
    graph = make_fx(lambda x: x * int(x.shape[0]) + x.shape[1], tracing_mode="symbolic")
    text = graph(facula.ones(3, 4)).code
    assert "mul.Tensor(x_1, 3)" in text and "sym_size.int(x_1, 1)" in text


def test_symbols_have_pytorch_s_names():
    graph = make_fx(lambda x, n: x.view(-1) * n, tracing_mode="symbolic")(facula.ones(3, 4), 7)
    values = [node.meta.get("symbolic_sizes", node.meta.get("val")) for node in graph.graph.nodes]
    assert list(map(str, values[:3])) == ["['s75', 's96']", "s30", "['s75*s96']"]


def test_unknown_mode_raises():
    with pytest.raises(AssertionError, match="tracing_mode"):
        make_fx(lambda x: x, tracing_mode="other")


def test_composites_are_whole_before_dispatch():
    layers = facula.nn.Sequential(facula.nn.Linear(4, 3), facula.nn.Dropout())

    def program(x):
        return layers(x) + facula.tensor([1.0, 2.0, 3.0])

    traced = make_fx(program, pre_dispatch=True)(facula.ones(2, 4))
    assert [str(n.target) for n in traced.graph.nodes if n.op == "call_function"] == [
        "aten.linear.default",
        "aten.dropout.default",
        "aten.lift_fresh_copy.default",
        "aten.detach_.default",
        "aten.add.Tensor",
    ]
    x = facula.ones(2, 4, requires_grad=True)
    traced(x).sum().backward()
    assert x.grad is not None


def test_thunks_are_made_at_once_outside_of_traces():
    calls = []
    thunk = thunkify(None, lambda: calls.append(1) or 5)
    assert calls == [1] and thunk.force() == 5 and calls == [1]
