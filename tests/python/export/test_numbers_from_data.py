"""Programs whose sizes data decide: nonzero, masks, item(), torch._check()."""

import io

import facula
import pytest
from facula import nn
from facula.export import Dim, export
from facula.fx.experimental.proxy_tensor import make_fx
from facula.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from .data_programs import build

PROGRAMS = build(facula)
X = facula.tensor([1, 0, 2, 3])
V = facula.tensor([0.5, -1.0, 2.0, -3.0])


class _Module(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def same(found, expected):
    for a, b in zip(*(facula.utils._pytree.tree_leaves(v) for v in (found, expected)), strict=True):
        if isinstance(b, facula.Tensor):
            facula.testing.assert_close(a, b)
        else:
            assert a == b


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_serves_other_data(name):
    function, sample, other = PROGRAMS[name]
    program = export(_Module(function), sample)
    for args in (sample, other):
        same(program.module()(*args), function(*args))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_is_taken_apart(name):
    function, sample, other = PROGRAMS[name]
    program = export(_Module(function), sample).run_decompositions()
    same(program.module()(*other), function(*other))
    same(facula.export.unflatten(program)(*other), function(*other))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_file_keeps_it(name):
    function, sample, other = PROGRAMS[name]
    file = io.BytesIO()
    facula.export.save(export(_Module(function), sample), file)
    file.seek(0)
    same(facula.export.load(file).module()(*other), function(*other))


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs_of_make_fx(name):
    function, sample, other = PROGRAMS[name]
    graph = make_fx(function, tracing_mode="symbolic")(*sample)
    same(graph(*other), function(*other))


def test_the_graph_checks_what_the_program_said():
    program = export(_Module(PROGRAMS["item"][0]), (facula.tensor(4), V[:1]))
    targets = [str(node.target) for node in program.graph.nodes]
    assert targets.count("aten._assert_scalar.default") == 2
    assert str(program.range_constraints) == "{u0: VR[3, 9]}"
    for one in (program, program.run_decompositions()):
        with pytest.raises(RuntimeError, match="u0 > 2"):
            one.module()(facula.tensor(1), V[:1])


def test_dynamic_sizes_beside_numbers_from_data():
    of_mask = PROGRAMS["mask"][0]
    program = export(_Module(of_mask), (V,), dynamic_shapes=({0: Dim("n", max=100)},))
    x = facula.randn(9)
    same(program.module()(x), of_mask(x))


def branch(x):
    n = x.item()
    return x if n > 3 else x + 1


@pytest.mark.parametrize(
    "function, args, error",
    [
        (branch, (facula.tensor(4),), GuardOnDataDependentSymNode),
        (lambda x: x if x.any() else x + 1, (X,), RuntimeError),
        (lambda x: facula.ones(int(x.sum())), (X,), RuntimeError),
        (lambda x: (x * 1).chunk(x[0].item())[0].sum(), (X,), RuntimeError),
    ],
)
def test_branches_on_data_raise(function, args, error):
    with pytest.raises(error):
        export(_Module(function), args)
    with pytest.raises(error):
        make_fx(function, tracing_mode="symbolic")(*args)


def test_methods_take_symbolic_sizes_as_numbers():
    def f(x):
        n = x.shape[0]
        return x.add(n), x.mul(n).sub_(n), facula.add(x, n), x.clamp(max=n), x.fill_(n)

    x, y = facula.ones(3, 4), facula.ones(6, 5)
    graph = make_fx(f, tracing_mode="symbolic")(x.clone())
    same(graph(y.clone()), f(y.clone()))
