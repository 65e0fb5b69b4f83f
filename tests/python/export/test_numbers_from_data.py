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


def of_mask_and_slice(x, count):
    n = count.item()
    facula._check(n >= 1)
    facula._check(n <= x.shape[0])
    y = x[:n] * 2
    (gradient,) = facula.autograd.grad((x[x > 0] ** 2).sum() + (y * y).sum(), x)
    return gradient


def test_the_graph_of_a_gradient_serves_other_data():
    def given(shift, n):
        return (V + shift).requires_grad_(), facula.tensor(n)

    graph = make_fx(of_mask_and_slice, tracing_mode="symbolic")(*given(0, 2))
    for args in (given(0, 2), given(-1, 3)):
        same(graph(*args), of_mask_and_slice(*args))


def test_an_operator_is_refused_where_nothing_stands_for_its_size():
    with pytest.raises(RuntimeError, match="aten.nonzero.default, whose result depends on data"):
        make_fx(lambda x: x.nonzero(), tracing_mode="fake")(X)


@facula.library.custom_op("export_test::places", mutates_args=())
def places(x: facula.Tensor, most: int) -> facula.Tensor:
    return facula.nonzero(x)[:most].clone()


@places.register_fake
def _places_without_data(x, most):
    rows = facula.library.get_ctx().new_dynamic_size(min=1, max=most)
    return x.new_empty(rows, x.dim(), dtype=facula.int64)


def test_a_custom_operator_says_that_data_decide_a_size():
    def function(x):
        found = places(x, 3)
        return found * 2 if found.shape[0] >= 1 else found

    program = export(_Module(function), (X,))
    assert str(program.range_constraints) == "{u0: VR[1, 3]}"
    for x in (X, facula.tensor([0, 0, 5, 0])):
        same(program.module()(x), function(x))
        same(program.run_decompositions().module()(x), function(x))


def test_what_a_slice_leaves_over():
    def function(count, y):
        n = count.item()
        facula._check(n >= 0)
        facula._check(n <= y.shape[0])
        return y[:n].sum() * y[n:].sum()

    program = export(_Module(function), (facula.tensor(2), V))
    same(program.module()(facula.tensor(1), V), function(facula.tensor(1), V))
