"""export: results, signatures, changes of buffers and inputs, guards, errors."""

import copy

import facula
import pytest
from facula import nn
from facula.export import export
from facula.export.graph_signature import InputKind, OutputKind

from .programs import build

PROGRAMS = build(facula)
F = nn.functional


def _same(a, b):
    leaves, spec = facula.utils._pytree.tree_flatten(a)
    others, other = facula.utils._pytree.tree_flatten(b)
    assert spec == other
    for one, two in zip(leaves, others, strict=True):
        if isinstance(one, facula.Tensor):
            facula.testing.assert_close(two, one)
        else:
            assert one == two


def _run(module, args, kwargs):
    return module(*copy.deepcopy(args), **copy.deepcopy(kwargs))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("decompose", [False, True])
def test_program_gives_eager_s_results(name, decompose):
    module, args, kwargs = copy.deepcopy(PROGRAMS[name])
    program = export(module, args, kwargs)
    program.validate()
    if decompose:
        program = program.run_decompositions()
        program.validate()
    # The program shares its tensors with the module.
    exported = copy.deepcopy(program.module())
    for _ in range(2):
        _same(_run(module, args, kwargs), _run(exported, args, kwargs))
    _same(dict(module.named_buffers()), dict(module.named_buffers()))


def test_signature_says_what_inputs_and_outputs_are():
    program = export(*PROGRAMS["constants"])
    signature = program.graph_signature
    kinds = {spec.target: spec.kind for spec in signature.input_specs}
    assert kinds["shift"] is InputKind.CONSTANT_TENSOR
    assert kinds["passing"] is InputKind.BUFFER
    assert signature.non_persistent_buffers == ("passing",)
    assert signature.user_inputs == ("x",)
    assert sorted(program.constants) == [
        "lifted_tensor_0",
        "lifted_tensor_1",
        "passing",
        "shift",
    ]
    assert list(program.state_dict) == []


def test_changes_are_outputs_after_decomposition():
    program = export(*PROGRAMS["buffer_changed"]).run_decompositions()
    assert [spec.kind for spec in program.graph_signature.output_specs] == [
        OutputKind.BUFFER_MUTATION,
        OutputKind.USER_OUTPUT,
    ]
    assert list(program.graph_signature.buffers_to_mutate.values()) == ["count"]
    changed = export(*PROGRAMS["input_written"]).run_decompositions()
    assert list(changed.graph_signature.user_inputs_to_mutate.values()) == ["x"]
    x = facula.ones(3, 4)
    changed.module()(x)
    assert x.tolist() == [[2.0] * 4] * 3


def test_export_leaves_the_module_as_it_was():
    module = nn.BatchNorm1d(4)
    before = copy.deepcopy(module.state_dict())
    tensors = {id(t) for t in [*module.parameters(), *module.buffers()]}
    export(module, (facula.ones(3, 4),))
    _same(dict(module.state_dict()), dict(before))
    assert tensors == {id(t) for t in [*module.parameters(), *module.buffers()]}
    assert not module._forward_hooks and not module._forward_pre_hooks


def test_running_statistics_change_as_in_eager():
    module, x = nn.BatchNorm1d(4), facula.arange(12.0).reshape(3, 4)
    program = export(copy.deepcopy(module), (x,)).run_decompositions().module()
    _same(module(x), program(x))
    _same(dict(module.named_buffers()), dict(program.named_buffers()))


def test_program_trains():
    module, x = nn.Linear(4, 2), facula.ones(3, 4)
    program = export(copy.deepcopy(module), (x,)).module()
    module(x).pow(2).sum().backward()
    program(x).pow(2).sum().backward()
    for a, b in zip(module.parameters(), program.parameters(), strict=True):
        facula.testing.assert_close(a.grad, b.grad)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda p: p.module()(facula.ones(4, 4)), AssertionError),
        (lambda p: p.module()(facula.ones(3)), AssertionError),
        (lambda p: p.module()(facula.ones(3, 4), facula.ones(3, 4)), ValueError),
        (lambda p: p.module()(y=facula.ones(3, 4)), ValueError),
        (lambda p: p.module()([facula.ones(3, 4)]), ValueError),
        (lambda p: p.module().eval(), NotImplementedError),
        (lambda p: p(facula.ones(3, 4)), RuntimeError),
    ],
)
def test_wrong_calls_raise(call, error):
    program = export(*PROGRAMS["blocks"])
    with pytest.raises(error):
        call(program)


class _Branches(nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x


class _Replaces(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", facula.zeros(4))

    def forward(self, x):
        self.state = x + 1
        return x


@pytest.mark.parametrize(
    ("module", "args", "error"),
    [
        (lambda x: x, (facula.ones(2),), ValueError),
        (nn.ReLU(), facula.ones(2), RuntimeError),
        (nn.ReLU(), (facula.ones(2), 3), TypeError),
        (_Branches(), (facula.ones(2),), RuntimeError),
        (_Replaces(), (facula.ones(4),), ValueError),
    ],
)
def test_what_cannot_be_exported_raises(module, args, error):
    with pytest.raises(error):
        export(module, args)


def test_constants_of_the_call_are_checked():
    program = export(*PROGRAMS["nests"]).module()
    module, args, kwargs = PROGRAMS["nests"]
    with pytest.raises(AssertionError, match="scale"):
        program(*args, scale=4.0)


def test_dataclasses_are_arguments():
    import dataclasses

    @dataclasses.dataclass
    class Pair:
        a: facula.Tensor
        b: facula.Tensor

    class Sum(nn.Module):
        def forward(self, pair):
            return Pair(pair.a + pair.b, pair.b)

    facula.export.register_dataclass(Pair)
    program = export(Sum(), (Pair(facula.ones(2), facula.ones(2)),))
    result = program.module()(Pair(facula.ones(2), facula.zeros(2)))
    assert isinstance(result, Pair) and result.a.tolist() == [1.0, 1.0]
    assert program.graph_signature.user_inputs == ("pair_a", "pair_b")
    with pytest.raises(ValueError, match="dataclass"):
        facula.export.register_dataclass(int)


def test_nodes_know_their_modules():
    program = export(*PROGRAMS["blocks"])
    linear = next(n for n in program.graph.nodes if n.name == "linear")
    assert [fqn for fqn, _ in linear.meta["nn_module_stack"].values()] == [
        "",
        "blocks.0",
        "blocks.0.linear",
    ]


def test_table_of_decompositions_can_be_changed():
    table = facula.export.default_decompositions()
    kept = table.copy()
    function = table.pop(facula.ops.aten.silu.default)
    assert isinstance(kept, facula.export.CustomDecompTable) and len(kept) == len(table) + 1
    assert kept.materialize()[facula.ops.aten.silu.default] is function
    program = facula.export.export(facula.nn.SiLU(), (facula.ones(2),))
    for one, expected in ((table, True), (kept, False)):
        targets = [str(n.target) for n in program.run_decompositions(one).graph.nodes]
        assert ("aten.silu.default" in targets) is expected


class _Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x, pair, *, scale=2):
        return {"a": self.linear(x) * scale, "b": (pair[0] + pair[1], x), "c": x.sum()}


class _CallsKept(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = _Kept()

    def forward(self, x, y):
        first = self.sub(x, (y, y * 2), scale=3)
        again = self.sub(x + 1, (y, y), scale=3)
        return first["a"] + first["b"][0] + again["b"][1]


def test_modules_whose_signature_is_kept_are_called_as_they_were():
    net, x, y = _CallsKept(), facula.randn(2, 3), facula.randn(2, 3)
    program = export(net, (x, y), preserve_module_call_signature=("sub",))
    kept = {e.fqn: e.signature for e in program.module_call_graph if e.signature}
    assert list(kept) == ["", "sub", "sub@1"]
    names = [getattr(a, "value", a.name) for a in kept["sub"].inputs]
    assert names == ["x", "y", "mul", 3]
    assert [a.name for a in kept["sub"].outputs] == ["mul_1", "add", "x", "sum_1"]
    tree = facula.export.unflatten(program)
    _same(tree(x, y), net(x, y))
    _same(tree.sub(x, (y, y * 2), scale=3), net.sub(x, (y, y * 2), scale=3))
    with pytest.raises(TypeError, match="structure"):
        tree.sub(x, y, scale=3)
    tree.sub = net.sub
    _same(tree(x, y), net(x, y))
    with pytest.raises(ValueError, match="preserve_module_call_signature"):
        export(net, (x, y), preserve_module_call_signature=("nowhere",))
