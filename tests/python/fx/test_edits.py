"""Edits of graphs: each runs, and gives modules that compute what they did before."""

import facula
import pytest
from facula import fx
from facula.fx.passes import tools_common
from facula.fx.passes.graph_drawer import FxGraphDrawer
from facula.fx.passes.graph_transform_observer import GraphTransformObserver
from facula.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper
from facula.fx.passes.infra.pass_manager import this_before_that_pass_constraint as before
from facula.fx.passes.shape_prop import ShapeProp
from facula.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap
from facula.utils._pytree import tree_leaves
from fx import edits


@pytest.mark.parametrize("edit", edits.EDITS, ids=lambda edit: edit.__name__)
def test_an_edit_runs(edit):
    assert edit() is not None


def test_replaced_patterns_compute_the_same():
    traced = fx.symbolic_trace(lambda x, y: facula.relu(x + y) * (x + y))
    found = fx.replace_pattern(traced, lambda a, b: a + b, lambda a, b: facula.add(b, a))
    x, y = facula.randn(3), facula.randn(3)
    assert len(found) == 2 and facula.equal(traced(x, y), facula.relu(x + y) * (x + y))


def test_steps_that_write_give_the_same_values():
    codes_and_values = edits.written_in_place()
    for value, expected in zip(codes_and_values[1::3], codes_and_values[2::3], strict=True):
        for a, b in zip(tree_leaves(value), tree_leaves(expected), strict=True):
            assert facula.equal(a, b)


def test_names_given_by_a_pattern_are_found():
    def pattern(a, b):
        total = a + b
        return facula.relu(total), {"total": total}

    matcher = SubgraphMatcherWithNameNodeMap(fx.symbolic_trace(pattern))
    found = matcher.match(fx.symbolic_trace(lambda x: facula.relu(x + 1)).graph)
    assert [match.name_node_map["total"].name for match in found] == ["add"]
    with pytest.raises(ValueError, match="a dict of names"):
        SubgraphMatcherWithNameNodeMap(fx.symbolic_trace(lambda a: facula.relu(a)))


def test_parts_compute_what_the_whole_does():
    model = edits.Small()
    x = facula.randn(4, 2)
    support = edits.create_op_support(lambda modules, node: node.op.startswith("call"))
    whole = edits.CapabilityBasedPartitioner(fx.symbolic_trace(model), support)
    fused = whole.partition_and_fuse()
    assert [node.op for node in fused.graph.nodes].count("call_module") == 1
    for a, b in zip(fused(x, x), model(x, x), strict=True):
        assert facula.equal(a, b)


def test_passes_run_in_an_order_that_keeps_to_rules():
    ran = []

    def first(gm):
        ran.append("first")

    def second(gm):
        ran.append("second")

    passes = [pass_result_wrapper(second), pass_result_wrapper(first)]
    manager = PassManager(passes, [before(passes[1], passes[0])])
    assert manager(fx.symbolic_trace(lambda x: x)).modified and ran == ["first", "second"]
    circle = [before(passes[1], passes[0]), before(passes[0], passes[1])]
    with pytest.raises(RuntimeError, match="no cycle"):
        PassManager(passes, circle).solve_constraints()


def test_steps_in_a_circle_have_no_order():
    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(facula.neg, (x,))
    b = graph.call_function(facula.neg, (a,))
    graph.output(b)
    a.args = (b,)
    with pytest.raises(RuntimeError, match="no cycles"):
        tools_common.legalize_graph(fx.GraphModule({}, graph))


def test_a_failing_step_is_named():
    traced = fx.symbolic_trace(lambda x: x @ x)
    with pytest.raises(RuntimeError, match=r"%matmul .* failed"):
        ShapeProp(traced).propagate(facula.ones(2, 3))


def test_a_drawing_has_a_box_for_each_step_and_parameter(tmp_path):
    traced = fx.symbolic_trace(edits.Small())
    ShapeProp(traced).propagate(facula.ones(3, 2), facula.ones(3, 2))
    dot = FxGraphDrawer(traced, "small").get_dot_graph()
    names = [node.name for node in traced.graph.nodes]
    assert set(names) < set(dot.nodes) and "l.weight" in dot.nodes
    assert ("relu", "mul") in dot.edges and ("l.weight", "l") in dot.edges
    assert "shape=[3, 2]" in dot.to_string() and "target=facula.relu" in dot.to_string()
    dot.write(tmp_path / "small.dot")
    assert (tmp_path / "small.dot").read_text() == dot.to_string()
    plain = FxGraphDrawer(traced, "small", ignore_parameters_and_buffers=True, ignore_getattr=True)
    assert set(plain.get_dot_graph().nodes) == set(names) - {"w"}


def test_a_missing_graphviz_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "")
    dot = FxGraphDrawer(fx.symbolic_trace(lambda x: x), "small").get_dot_graph()
    with pytest.raises(RuntimeError, match="Graphviz must be installed"):
        dot.create_svg()


def test_an_observed_pass_leaves_a_drawing_and_names_what_it_did(tmp_path):
    traced = fx.symbolic_trace(lambda x: facula.relu(x) + 1)
    with GraphTransformObserver(traced, "tanhs", log_url=str(tmp_path)) as observer:
        relu = traced.graph.find_nodes(op="call_function", target=facula.relu)[0]
        with traced.graph.inserting_after(relu):
            tanh = traced.graph.call_function(facula.tanh, relu.args)
        relu.replace_all_uses_with(tanh)
        traced.graph.erase_node(relu)
    assert observer.created_nodes == {"tanh"} and observer.erased_nodes == {"relu"}
    assert [source.pass_name for source in tanh.meta["from_node"]] == ["tanhs", "tanhs"]
    assert "tanh" in next(tmp_path.iterdir()).read_text()
    assert not traced._create_node_hooks
