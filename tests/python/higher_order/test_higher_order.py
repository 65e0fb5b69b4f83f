"""Branches, loops and scans: eager values and gradients, graphs, programs, files, errors."""

import io

import facula
import pytest
from facula._higher_order_ops import associative_scan, map, scan, while_loop
from facula.export import Dim, export, load, save
from facula.fx.experimental.proxy_tensor import make_fx
from higher_order.programs import functions, modules

FUNCTIONS, MODULES = functions(facula), modules(facula)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_graph_computes_what_the_function_computes(name, mode):
    function, args = FUNCTIONS[name]
    graph = make_fx(function, tracing_mode=mode)(*args)
    facula.testing.assert_close(graph(*args), function(*args))


def _cond(p, x):
    return facula.cond(p, lambda x: x.sin() + 1, lambda x: x.cos(), (x,))


def test_graph_has_both_branches():
    x = facula.rand(3)
    graph = make_fx(_cond)(facula.tensor(True), x)
    for p in (True, False):
        facula.testing.assert_close(graph(facula.tensor(p), x), _cond(p, x))
    assert str(facula.ops.higher_order.cond) == "cond"


def test_gradient_in_the_graph_is_that_of_the_branch_that_runs():
    def gradient(p, x):
        return facula.autograd.grad(_cond(p, x).sum(), x)[0]

    x = facula.rand(3).requires_grad_()
    for mode in ("real", "fake"):
        graph = make_fx(gradient, tracing_mode=mode)(facula.tensor(True), x)
        for p in (True, False):
            facula.testing.assert_close(graph(facula.tensor(p), x), gradient(p, x))


def test_graph_with_branches_serves_other_sizes():
    def function(x):
        return facula.cond(x.sum() > 0, lambda x: x.new_ones(x.shape), lambda x: x * 2, (x,))

    graph = make_fx(function, tracing_mode="symbolic")(facula.ones(3, 4))
    for x in (facula.ones(5, 2), -facula.ones(6, 6)):
        facula.testing.assert_close(graph(x), function(x))


def test_what_functions_have_from_elsewhere_becomes_an_operand():
    def function(p, x, y):
        kept = facula.ones(3)
        return facula.cond(p, lambda x: x * y + kept, lambda x: x - y, (x,))

    args = facula.rand(3), facula.rand(3)
    graph = make_fx(function)(facula.tensor(True), *args)
    others = facula.rand(3), facula.rand(3)
    for p in (True, False):
        facula.testing.assert_close(
            graph(facula.tensor(p), *others), function(facula.tensor(p), *others)
        )


@pytest.mark.parametrize("name", MODULES)
def test_program_runs_decomposed_and_from_a_file(name):
    module, args = MODULES[name]
    program, file = export(module, args), io.BytesIO()
    save(program, file)
    file.seek(0)
    for one in (program, program.run_decompositions(), load(file)):
        facula.testing.assert_close(one.module()(*args), module(*args))


def test_program_with_branches_trains():
    module, (_, x) = MODULES["branches"]
    program = export(module, (facula.tensor(True), x)).module()
    for p in (True, False):
        module.zero_grad(), program.zero_grad()
        for one in (module, program):
            one(facula.tensor(p), x.clone().requires_grad_()).sum().backward()
        found, expected = program.linear.weight.grad, module.linear.weight.grad
        if p:
            facula.testing.assert_close(found, expected)
        else:
            assert found is None and expected is None


def test_program_with_branches_and_dynamic_sizes():
    module, (p, x) = MODULES["branches"]
    program = export(module, (p, x), dynamic_shapes=(None, {0: Dim("rows")}))
    for p in (True, False):
        given = facula.tensor(p), facula.rand(7, 3)
        facula.testing.assert_close(program.module()(*given), module(*given))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 9])
@pytest.mark.parametrize("mode", ["pointwise", "generic"])
def test_associative_scan_gives_prefixes(count, mode):
    x = facula.rand(2, count)
    assert_close = facula.testing.assert_close
    found = associative_scan(lambda a, b: a + b, x, 1, combine_mode=mode)
    assert_close(found, x.cumsum(1))
    found = associative_scan(lambda a, b: a * b, {"x": x}["x"], 1, True, mode)
    assert_close(found, x.flip(1).cumprod(1).flip(1))


def test_associative_scan_of_a_nest_in_order():
    def compose(f, g):  # f then g, of x -> a x + b
        return {"a": f["a"] * g["a"], "b": f["b"] * g["a"] + g["b"]}

    maps = {"a": facula.rand(6), "b": facula.rand(6)}
    found = associative_scan(compose, maps, 0)
    a, b = facula.tensor(1.0), facula.tensor(0.0)
    for i in range(6):
        a, b = a * maps["a"][i], b * maps["a"][i] + maps["b"][i]
        facula.testing.assert_close((found["a"][i], found["b"][i]), (a, b))


def test_scan_carries_a_nest_with_gradients():
    x = facula.rand(4, 3).requires_grad_()

    def step(state, row):
        return {"sum": state["sum"] + row}, (state["sum"] * row, row)

    last, (products, rows) = scan(step, {"sum": facula.zeros(3)}, x, reverse=True)
    facula.testing.assert_close(last["sum"], x.sum(0))
    facula.testing.assert_close(rows, x)
    facula.testing.assert_close(products[0], x[1:].sum(0) * x[0])
    products.sum().backward()
    facula.testing.assert_close(x.grad, x.detach().sum(0) - x.detach())


def test_scan_along_another_dimension_and_by_length():
    x = facula.rand(3, 4)
    last, out = scan(lambda c, r: (c + r, c), facula.zeros(3), x, dim=1)
    facula.testing.assert_close(last, x.sum(1))
    assert out.shape == (4, 3)
    last, out = scan(lambda c, r: (c * 2, c), facula.ones(1), None, length=3)
    assert (last.tolist(), out.tolist()) == ([8], [[1], [2], [4]])


def test_map_of_nests():
    x = facula.rand(4, 3)
    found = map(lambda d, y: (d["x"].sum(), d["x"] + y), {"x": x}, facula.ones(3))
    facula.testing.assert_close(found, (x.sum(1), x + 1))


X = facula.ones(3)


@pytest.mark.parametrize(
    "call",
    [
        lambda: scan(lambda c, x: (c.sum(), x), X, facula.ones(2, 3)),
        lambda: scan(lambda c, x: c, X, facula.ones(2, 3)),
        lambda: scan(3, X, facula.ones(2, 3)),
        lambda: scan(lambda c, x: (c, x), X, facula.ones(0, 3)),
        lambda: scan(lambda c, x: (c, x), X, None),
        lambda: map(lambda x: x, facula.ones(())),
        lambda: map(lambda x: x, [1, 2]),
        lambda: associative_scan(lambda a, b: (a, b), X, 0),
        lambda: associative_scan(lambda a, b: a, X, 1),
        lambda: make_fx(_unlike)(X),
        lambda: make_fx(_same_tensor)(X),
        lambda: while_loop(lambda x: x, lambda x: (x,), (X,)),
    ],
)
def test_what_does_not_fit_raises(call):
    with pytest.raises(RuntimeError, match="expected"):
        call()


def _unlike(x):
    return facula.cond(x.sum() > 0, lambda x: x.sum(), lambda x: x * 2, (x,))


def _same_tensor(x):
    return facula.cond(x.sum() > 0, lambda x: x, lambda x: x * 2, (x,))


def test_gradients_that_graphs_lack_say_so():
    def loop(x):
        return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, x))

    with pytest.raises(NotImplementedError, match="while_loop.*gradients"):
        make_fx(loop)(facula.ones(2, requires_grad=True))


class _Square(facula.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return ctx.saved_tensors[0] * grad * 2


def test_custom_functions_in_graphs_have_their_gradients():
    def gradient(x):
        return facula.autograd.grad(_Square.apply(x).sum(), x)[0]

    for mode in ("real", "fake"):
        graph = make_fx(gradient, tracing_mode=mode)(facula.ones(3, requires_grad=True))
        x = facula.rand(3).requires_grad_()
        facula.testing.assert_close(graph(x), x.detach() * 2)


def test_module_and_function_of_one_name():
    from facula._higher_order_ops.scan import scan as found

    assert found is scan and facula._higher_order_ops.scan is scan
    assert facula.cond is facula._higher_order_ops.cond
    assert isinstance(facula.ops.higher_order.scan, facula._ops.HigherOrderOperator)


def test_product_in_a_wider_dtype():
    aten, product = facula.ops.aten, facula.ops.higher_order.out_dtype
    a = facula.full((2, 3), 100, dtype=facula.int8)
    found = product(aten.mm.default, facula.int32, a, a.t())
    assert found.dtype is facula.int32 and found.tolist() == [[30000, 30000]] * 2
    graph = make_fx(lambda a: product(aten.mul.Tensor, facula.float32, a, 0.5))(a)
    assert "higher_order.out_dtype" in graph.code
    facula.testing.assert_close(graph(a), a * 0.5)
    for op in (aten.add.Tensor, aten.mul_.Tensor, 3):
        with pytest.raises(ValueError, match="out_dtype.*expected"):
            product(op, facula.int32, a, a)


class _Attention(facula.nn.Module):
    def forward(self, query, key):
        from facula.nn.attention.flex_attention import flex_attention

        return flex_attention(query, key, key, lambda s, b, h, q, kv: s - (q - kv).abs() * (h + 1))


def test_flex_attention_in_graphs_and_programs():
    args = facula.rand(1, 2, 4, 8), facula.rand(1, 2, 6, 8)
    others = facula.rand(1, 2, 4, 8), facula.rand(1, 2, 6, 8)
    expected = _Attention()(*others)
    for one in (make_fx(_Attention().forward)(*args), export(_Attention(), args).module()):
        facula.testing.assert_close(one(*others), expected)
