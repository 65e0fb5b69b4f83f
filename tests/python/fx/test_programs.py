"""Traced programs compute what the programs do, however they are run, copied and stored."""

import copy
import pickle
import subprocess
import sys

import facula
import pytest
from facula import fx, nn
from fx import programs

sys.modules.setdefault(programs.__name__, programs)
# What Python itself decides is decided while tracing: the class of a proxy, `+=` on it.
DECIDED = {"augmented_by_function", "known_condition"}
CASES = [case for case in programs.CASES if case.inputs is not None]


def same(a, b):
    if isinstance(a, facula.Tensor):
        return isinstance(b, facula.Tensor) and facula.equal(a, b) or bool((a != a).any())
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@pytest.mark.parametrize("case", CASES, ids=programs.name_of)
def test_a_traced_program_computes_the_same(case):
    traced = programs.trace(case)

    def results(run):
        return run(*copy.deepcopy(case.inputs))

    expected = results(traced)
    if programs.name_of(case) not in DECIDED and case.tracer in (fx.Tracer, programs.Constant):
        assert same(expected, results(case.program))
    assert same(expected, results(fx.Interpreter(traced).run))
    assert same(expected, results(fx.Transformer(traced).transform()))
    assert same(expected, results(copy.deepcopy(traced)))
    assert same(expected, results(pickle.loads(pickle.dumps(traced))))
    assert str(pickle.loads(pickle.dumps(traced.graph))) == str(traced.graph)
    traced.graph.lint()


def test_a_module_is_written_to_a_folder(tmp_path, monkeypatch):
    model = programs.Shapes()
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), model.__class__()))
    traced.to_folder(tmp_path / "written", "Written")
    monkeypatch.syspath_prepend(str(tmp_path))
    from written import Written  # made just now

    x = facula.ones(3, 2)
    assert facula.equal(Written()(x), traced(x))


def test_hooks_hear_of_nodes():
    heard = []
    traced = fx.symbolic_trace(lambda x: x + 1)
    traced._register_create_node_hook(lambda node: heard.append(f"create {node}"))
    traced._register_erase_node_hook(lambda node: heard.append(f"erase {node}"))
    traced._register_replace_node_hook(lambda old, new, user: heard.append(f"{old} {new} {user}"))
    add = traced.graph.find_nodes(op="call_function", target=programs.operator.add)[0]
    with traced.graph.inserting_after(add):
        relu = traced.graph.call_function(facula.relu, add.args[:1])
    add.replace_all_uses_with(relu)
    traced.graph.erase_node(add)
    assert heard == ["create relu", "add relu output", "erase add"]


def test_stack_traces_name_the_line_of_the_program():
    class Model(nn.Module):
        def forward(self, x):
            return x.relu()

    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    traced = fx.GraphModule(nn.Module(), tracer.trace(Model()))
    text = traced.print_readable(print_output=False)
    assert "test_programs.py" in text and "in forward, code: return x.relu()" in text


def test_a_body_is_transformed_and_the_codegen_replaced():
    class ListCodeGen(fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            names = ", ".join(free_vars)
            return f"def forward(self, values){maybe_return_annotation}:\n    {names} = values"

        def process_inputs(self, *inputs):
            return inputs[0]

    traced = fx.symbolic_trace(lambda x, y: x - y)
    traced.graph.set_codegen(ListCodeGen())
    traced.recompile()
    assert traced([3, 1]) == 2 and fx.Interpreter(traced).run([3, 1]) == 2
    with traced.graph.on_generate_code(lambda before: lambda body: ["# changed\n", *body]):
        traced.recompile()
    assert "# changed" in traced.code


def test_an_interpreter_names_the_step_that_failed():
    traced = fx.symbolic_trace(lambda x, y: x.relu() @ y)
    with pytest.raises(RuntimeError, match="While executing %matmul"):
        fx.Interpreter(traced).run(facula.ones(2, 3), facula.ones(2, 3))
    args = [facula.ones(2, 2), facula.ones(2, 2)]
    assert fx.Interpreter(traced).boxed_run(args).sum() == 8 and not args


def test_random_operators_and_writes_are_not_dead_code():
    def program(x):
        x.relu()
        facula.bernoulli(x)
        facula.ops.aten.add_.Tensor(x, 1)
        facula.neg(x)
        return x

    graph = fx.symbolic_trace(program).graph
    graph.eliminate_dead_code()
    assert [node.name for node in graph.nodes] == ["x", "bernoulli", "add__tensor", "output"]


def test_code_of_a_program_that_says_torch_says_torch():
    program = (
        "import pickle, torch, torch.fx\n"
        "traced = torch.fx.symbolic_trace(lambda x: torch.relu(x).to(torch.float64))\n"
        "print(traced.code, pickle.loads(pickle.dumps(traced)).print_readable(False))\n"
    )
    command = [sys.executable, "-m", "facula", "run", "-c", program]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "relu = torch.relu(x)" in shown and "class <lambda>(torch.nn.Module)" in shown
    assert "facula" not in shown
