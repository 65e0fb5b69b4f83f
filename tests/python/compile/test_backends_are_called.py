"""A backend of the user's own: when it is called, with what, and what becomes of its function."""

import weakref

import facula
import pytest
from facula._dynamo import exc
from facula._dynamo.testing import (
    AotEagerAndRecordGraphs,
    CompileCounter,
    EagerAndRecordGraphs,
    extract_graph,
    same,
)

nn, F = facula.nn, facula.nn.functional


@pytest.fixture(autouse=True)
def forgotten():
    facula._dynamo.reset()
    yield
    facula._dynamo.reset()


def names(graph_module, op):
    return [n.name for n in graph_module.graph.nodes if n.op == op]


def targets(graph_module):
    calls = [n for n in graph_module.graph.nodes if "call" in n.op]
    return [getattr(n.target, "__name__", n.target) for n in calls]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        return F.gelu(self.norm(self.linear(x)))


def test_a_backend_gets_a_graph_of_whole_functions_with_parameters_as_inputs():
    seen = []

    def backend(graph_module, example_inputs):
        seen.append((graph_module, example_inputs))
        return graph_module.forward

    net, x = Net(), facula.randn(2, 3)
    compiled = facula.compile(net, backend=backend)
    out = compiled(x)
    assert facula.equal(out, net(x)) and facula.equal(compiled(x), out)
    ((graph_module, inputs),) = seen
    assert isinstance(graph_module, facula.fx.GraphModule)
    assert targets(graph_module) == ["linear", "layer_norm", "gelu"]
    assert names(graph_module, "placeholder")[:2] == [
        "l_x_",
        "l_self_modules_linear_parameters_weight_",
    ]
    assert inputs[0] is x and inputs[1] is net.linear.weight and len(inputs) == 5
    node = next(n for n in graph_module.graph.nodes if n.name == "gelu")
    assert node.meta["example_value"].shape == (2, 4) and __file__ in node.meta["stack_trace"]


def test_what_the_backend_returns_runs_on_later_calls():
    calls = []

    def backend(graph_module, example_inputs):
        def run(*args):
            calls.append(len(args))
            return tuple(r + 100 for r in graph_module(*args))

        return run

    f = facula.compile(lambda x: x * 2, backend=backend)
    assert f(facula.ones(2)).tolist() == f(facula.ones(2)).tolist() == [102, 102]
    assert calls == [1, 1]


def test_a_boxed_function_takes_one_list():
    def backend(graph_module, example_inputs):
        def run(args):
            return graph_module(*args)

        run._boxed_call = True
        return run

    assert facula.compile(lambda x: x + 1, backend=backend)(facula.ones(1)).item() == 2


def test_options_and_mode_are_passed_on():
    seen = {}

    def backend(graph_module, example_inputs, **kwargs):
        seen.update(kwargs)
        return graph_module.forward

    facula.compile(facula.sin, backend=backend, options={"a": 1})(facula.ones(1))
    assert seen == {"options": {"a": 1}}


@pytest.mark.parametrize("result", ["raises", "nothing"])
def test_a_backend_that_fails_is_named(result):
    def broken(graph_module, example_inputs):
        if result == "raises":
            raise ValueError("no idea")

    with pytest.raises(exc.BackendCompilerFailed, match="broken"):
        facula.compile(lambda x: x + 1, backend=broken)(facula.ones(1))
    with facula._dynamo.config.patch(suppress_errors=True), pytest.warns(UserWarning):
        assert facula.compile(lambda x: x + 1, backend=broken)(facula.ones(1)).item() == 2


def test_tensors_that_the_program_keeps_have_the_values():
    kept = []

    def f(x):
        y = x * 2
        kept.append(y)
        kept.append(weakref.ref(y))
        return y + 1

    x = facula.ones(2, requires_grad=True)
    out = facula.compile(f, backend="eager")(x)
    assert kept[0].tolist() == [2, 2] and kept[1]() is kept[0] and out.tolist() == [3, 3]
    kept[0].sum().backward()
    assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_training_gives_the_bits_of_eager(backend):
    def train(call):
        facula.manual_seed(0)
        net = Net()
        forward = call(net)
        optimizer = facula.optim.AdamW(net.parameters(), lr=0.1)
        losses = []
        for _ in range(3):
            loss = forward(facula.randn(5, 3)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, [p.detach().clone() for p in net.parameters()]

    losses, parameters = train(lambda net: facula.compile(net, backend=backend))
    expected, wanted = train(lambda net: net)
    assert losses == expected
    assert all(facula.equal(a, b) for a, b in zip(parameters, wanted, strict=True))


def test_a_whole_step_with_backward_and_optimizer_inside():
    def train(call):
        facula.manual_seed(0)
        net = Net()
        optimizer = facula.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

        @call
        def step(x):
            loss = net(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return [step(facula.randn(5, 3)).item() for _ in range(3)]

    assert train(facula.compile(backend="eager")) == train(lambda f: f)


def test_fullgraph_names_the_line_and_the_reason_of_a_break():
    def f(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(exc.Unsupported, match=r"test_backends_are_called.py:\d+.*__bool__"):
        facula.compile(f, backend="eager", fullgraph=True)(facula.ones(2))


class Doubled(facula.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 20


def break_free(name):
    x = facula.ones(3, requires_grad=True)
    return {
        "custom function": (lambda x: Doubled.apply(x) + 1, x),
        "operator": (lambda x: facula.ops.aten.add.Tensor(x, x), x),
        "operators of lists": (lambda x: facula._foreach_add([x, x], 1.0)[1], x),
        "conditions on geometry": (lambda x: x + 1 if x.is_contiguous() and x.dim() == 1 else x, x),
    }[name]


@pytest.mark.parametrize(
    "name", ["custom function", "operator", "operators of lists", "conditions on geometry"]
)
def test_what_needs_no_break(name):
    f, x = break_free(name)
    counter = CompileCounter()
    out = facula.compile(f, backend=counter, fullgraph=True)(x)
    assert facula.equal(out, f(x)) and counter.frame_count == 1
    (gradient,) = facula.autograd.grad(out.sum(), x)
    assert facula.equal(gradient, facula.autograd.grad(f(x).sum(), x)[0])


def forward_derivative(x):
    from facula.autograd import forward_ad

    with forward_ad.dual_level():
        return forward_ad.unpack_dual(forward_ad.make_dual(x, x * 2).sin()).tangent


@pytest.mark.parametrize(
    "f",
    [
        lambda x: facula.func.vmap(facula.sin)(x) + 1,
        lambda x: facula.func.grad(lambda y: y.square().sum())(x + 1),
        lambda x: facula.func.jvp(facula.sin, (x,), (x + 1,))[1],
        lambda x: forward_derivative(x + 1),
        lambda x: [y * 2 for y in x + 1],
        lambda x: [
            facula.autograd.grad(y, z)[0] for z in [x[:1].clone().requires_grad_()] for y in z * 3
        ],
        lambda x: facula.autograd.functional.jacobian(lambda t: t.pow(3), x + 1),
        lambda x: facula.autograd.functional.hessian(lambda t: t.pow(3).sum(), x + 1),
        lambda x: x[: (x.sum() - 1).long()] + 1,
        lambda x: facula.utils.checkpoint.checkpoint(facula.sin, x * 2, use_reentrant=False),
        lambda x: facula.autograd.grad(((y := x.clone().requires_grad_()) * 2).sum(), y),
        lambda x: nn.Parameter(x + 1) * 2,
        lambda x: facula.from_numpy((x + 1).numpy()),
        lambda x: eval(repr((x + 1).tolist())),
        lambda x: [x + i for i in range(int(x.sum()))],
        lambda x: f"{x.sum():.2f}",
        lambda x: sorted([x.sum() * -1, x.mean()]),
        lambda x: (x > 0).all() and x[x > 0] + 1,
        lambda x: x.clone().resize_(2) + 1,
        lambda x: facula.nn.utils.parameters_to_vector([x * 2]),
        lambda x: facula.vmap(lambda a: a.sum())(x.view(3, 1) + 1),
        lambda x: (x.to_sparse() * 2).to_dense() + x,
    ],
)
def test_breaks_of_every_kind_give_what_eager_gives(f):
    x = facula.ones(3)
    found, expected = facula.compile(f, backend="eager")(x), f(x)
    assert str(found) == str(expected)


def test_hooks_on_values_inside_are_called():
    seen = []

    def f(x):
        y = x * 2
        y.register_hook(lambda gradient: seen.append(gradient.tolist()))
        return y * 3

    x = facula.ones(1, requires_grad=True)
    facula.compile(f, backend="eager")(x).backward()
    assert seen == [[3.0]] and x.grad.item() == 6


def test_effects_before_an_exception_stay():
    def f(x):
        x.add_(1)
        raise KeyError("gone")

    x = facula.zeros(2)
    with pytest.raises(KeyError, match="gone"):
        facula.compile(f, backend="eager")(x)
    assert x.tolist() == [1, 1]


def test_an_error_of_shapes_is_raised_at_its_line():
    def f(x):
        try:
            return x @ facula.ones(7, 7)
        except RuntimeError as error:
            return str(error)

    x = facula.ones(3, 3)
    assert facula.compile(f, backend="eager")(x) == f(x)


def test_random_numbers_come_in_the_order_of_the_program():
    def f(x):
        return F.dropout(x, 0.5) + facula.rand(4), facula.randn(2)

    facula.manual_seed(5)
    expected = f(facula.ones(4))
    facula.manual_seed(5)
    found = facula.compile(f, backend="eager")(facula.ones(4))
    assert all(facula.equal(a, b) for a, b in zip(found, expected, strict=True))


# --- recompilations


def relu(x):
    return x.relu()


def test_a_limit_of_compilations_is_told_of_once_and_what_is_compiled_stays():
    counter = CompileCounter()
    f = facula.compile(relu, backend=counter, dynamic=False)
    with facula._dynamo.config.patch(recompile_limit=2):
        f(facula.ones(2)), f(facula.ones(3))
        with pytest.warns(UserWarning, match="recompile_limit"):
            assert f(-facula.ones(4)).tolist() == [0] * 4
        assert f(-facula.ones(5)).tolist() == [0] * 5
    assert counter.frame_count == 2
    with facula._dynamo.config.patch(recompile_limit=2, fail_on_recompile_limit_hit=True):
        with pytest.raises(exc.FailOnRecompileLimitHit):
            f(facula.ones(6))
    with facula._dynamo.config.patch(error_on_recompile=True):
        with pytest.raises(exc.RecompileError):
            f(facula.ones(7))


def test_reset_forgets_what_was_compiled():
    counter = CompileCounter()
    f = facula.compile(relu, backend=counter)
    f(facula.ones(2)), f(facula.ones(2))
    facula._dynamo.reset()
    f(facula.ones(2))
    assert counter.frame_count == 2


@pytest.mark.parametrize("mark, count", [("mark_dynamic", 1), ("mark_static", 3)])
def test_sizes_that_are_marked(mark, count):
    counter = CompileCounter()
    f = facula.compile(relu, backend=counter)
    for size in (3, 4, 5):
        x = facula.ones(size)
        getattr(facula._dynamo, mark)(x, 0)
        f(x)
    assert counter.frame_count == count


def test_a_backend_that_looks_at_sizes_is_called_for_each():
    def backend(graph_module, example_inputs):
        size = example_inputs[0].shape[0]
        return lambda x: (x + size,)

    f = facula.compile(lambda x: x + 0, backend=backend)
    assert [f(facula.zeros(n))[0].item() for n in (2, 3, 4, 5)] == [2, 3, 4, 5]


def test_numbers_that_differ_become_inputs():
    recorder = EagerAndRecordGraphs()
    f = facula.compile(lambda x, n: x * n, backend=recorder)
    assert [f(facula.ones(1), n).item() for n in (2, 3, 4, 5)] == [2, 3, 4, 5]
    first, second = recorder.graphs
    assert len(names(first, "placeholder")) == 1 and len(names(second, "placeholder")) == 2


# --- what steers it


def test_stances():
    counter = CompileCounter()
    f = facula.compile(relu, backend=counter)
    with facula.compiler.set_stance("force_eager"):
        f(facula.ones(2))
    with facula.compiler.set_stance("eager_on_recompile"):
        f(facula.ones(2))
    assert counter.frame_count == 0
    with facula.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError):
        f(facula.ones(2))
    f(facula.ones(2))
    assert counter.frame_count == 1
    with facula.compiler.set_stance("fail_on_recompile"):
        f(facula.ones(2))
    other = CompileCounter()
    with facula.compiler.set_stance(force_backend=other):
        f(facula.ones(2, 2))
    assert (counter.frame_count, other.frame_count) == (1, 1)
    with pytest.raises(RuntimeError, match="nope"):
        facula.compiler.set_stance("nope")


@facula.compiler.set_stance("force_eager")
def in_eager(f, x):
    return f(x)


def test_a_stance_as_a_decorator_holds_in_the_function_alone():
    counter = CompileCounter()
    f = facula.compile(relu, backend=counter)
    in_eager(f, facula.ones(2))
    assert counter.frame_count == 0
    f(facula.ones(2))
    assert counter.frame_count == 1


def test_programs_ask_whether_they_are_compiled():
    def f(x):
        return x + (1 if facula.compiler.is_compiling() else 2)

    x = facula.zeros(1)
    assert facula.compile(f, backend="eager")(x).item() == 1 == facula.compile(f)(x).item()
    assert f(x).item() == 2 and not facula.compiler.is_compiling()


def test_functions_that_are_one_call_of_a_graph():
    @facula._dynamo.allow_in_graph
    def whole(x):
        return x.sin().cos()

    recorder = EagerAndRecordGraphs()
    x = facula.ones(2)
    assert facula.equal(facula.compile(lambda x: whole(x) + 1, backend=recorder)(x), whole(x) + 1)
    assert targets(recorder.graphs[0]) == ["whole", "add"]


def test_a_compiled_function_inside_is_part_of_the_graph():
    inner = facula.compile(lambda x: x + 1, backend="eager")
    counter = CompileCounter()
    assert facula.compile(lambda x: inner(x) * 2, backend=counter)(facula.ones(1)).item() == 4
    assert (counter.frame_count, counter.op_count) == (1, 2)


def test_names_of_backends():
    dynamo = facula._dynamo
    assert {"eager", "aot_eager", "aot_eager_decomp_partition"} <= set(dynamo.list_backends(None))
    assert "eager" not in dynamo.list_backends()

    @dynamo.register_backend(name="of_this_test")
    def backend(graph_module, example_inputs):
        return lambda *args: (args[0] + 7,)

    try:
        assert "of_this_test" in dynamo.list_backends()
        assert facula.compile(relu, backend="of_this_test")(facula.zeros(1)).item() == 7
        with pytest.raises(AssertionError, match="of_this_test"):
            dynamo.register_backend(backend, name="of_this_test")
    finally:
        dynamo.backends.registry._BACKENDS.pop("of_this_test")


def test_backends_of_installed_packages_are_found(tmp_path, monkeypatch):
    (tmp_path / "far_away.py").write_text("def backend(gm, inputs): return lambda x: (x + 9,)\n")
    info = tmp_path / "far_away-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: far-away\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[torch_dynamo_backends]\nfar = far_away:backend\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = facula._dynamo.backends.registry
    registry._installed.cache_clear()
    try:
        assert "far" in facula._dynamo.list_backends()
        assert facula.compile(relu, backend="far")(facula.zeros(1)).item() == 9
    finally:
        registry._BACKENDS.pop("far", None)
        registry._installed.cache_clear()


def test_a_backend_that_splits_gets_forward_and_backward():
    recorder = AotEagerAndRecordGraphs()
    x = facula.ones(3, requires_grad=True)
    facula.compile(lambda x: (x.sin() * x).sum(), backend=recorder)(x).backward()
    assert [len(g) for g in (recorder.graphs, recorder.fw_graphs, recorder.bw_graphs)] == [1, 1, 1]
    assert facula.equal(x.grad, x.sin() + x * x.cos())
    result, graphs, forward = extract_graph(lambda x: x + 1, facula.ones(2))
    assert same(result, facula.full((2,), 2.0)) and len(graphs) == len(forward) == 1


def test_a_call_holds_nothing_when_it_is_over():
    x = facula.ones(3)
    alive = weakref.ref(x)
    out = facula.compile(lambda x: x.sin() + 1, backend=lambda gm, inputs: gm.forward)(x)
    del x
    assert alive() is None and out.shape == (3,)


def test_a_function_of_autograd_that_reaches_other_tensors_runs_as_it_is():
    w = facula.full((2,), 3.0)

    class Scaled(facula.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * w

        @staticmethod
        def backward(ctx, gradient):
            w.zero_()
            return gradient

    x = facula.ones(2, requires_grad=True)
    out = facula.compile(lambda x: Scaled.apply(x * 1) + 1, backend="aot_eager")(x)
    assert out.tolist() == [4, 4] and w.tolist() == [3, 3]
    out.sum().backward()
    assert w.tolist() == [0, 0]


def test_counters_tell_of_graphs_and_breaks():
    from facula._dynamo.utils import counters

    counters.clear()

    def f(x):
        y = x + 1
        facula._dynamo.graph_break("wanted")
        return y * 2

    facula.compile(f, backend="eager")(facula.ones(2))
    assert counters["graph_break"] == {"wanted": 1}
    assert counters["stats"] == {"unique_graphs": 2, "calls_captured": 2}


SCALE = 3


def squares(x):
    return (x * SCALE).square().sum()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: facula.vmap(lambda a: a.sin() * 2)(x + 1) * 2,
        lambda x: facula.func.grad(squares)(x) + 1,
        lambda x: facula.func.grad(lambda y: facula.func.grad(squares)(y).sum())(x) + 1,
        lambda x: facula.vmap(facula.func.grad(squares), in_dims=(1,), out_dims=1)(x),
        lambda x: facula.func.grad_and_value(squares)(x)[1] * 2,
        lambda x: [facula.vmap(lambda a, n=n: a * n)(x) for n in (2, 3)][1],
    ],
)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_transform_of_a_function_that_reads_its_arguments_is_a_call_of_the_graph(f, backend):
    x = facula.randn(3, 2)
    compiled = facula.compile(f, backend=backend, fullgraph=True)
    for _ in range(3):
        facula.testing.assert_close(compiled(x), f(x))
    counter = CompileCounter()
    compiled = facula.compile(f, backend=counter)
    compiled(x), compiled(x)
    assert counter.frame_count == 1


def test_a_transform_of_a_function_that_reads_others_sees_them_change():
    global SCALE
    w, before = facula.ones(2), SCALE
    of_tensor = facula.compile(lambda x: facula.vmap(lambda a: a * w)(x) + 1, backend="aot_eager")
    of_number = facula.compile(lambda x: facula.func.grad(squares)(x), backend="aot_eager")
    x = facula.ones(2, 2)
    try:
        for _ in range(3):
            assert of_tensor(x)[0, 0].item() == w[0].item() + 1
            assert of_number(x)[0, 0].item() == 2 * SCALE**2
            w.add_(1)
            SCALE += 1
    finally:
        SCALE = before


@pytest.mark.parametrize("function", [facula.prod, lambda x: x.cumprod(0).sum()])
def test_a_gradient_that_reads_data_is_autograd_s(function):
    x, y = (facula.tensor([2.0, 0.0, 3.0], requires_grad=True) for _ in range(2))
    facula.compile(function, backend="aot_eager")(x).backward()
    function(y).backward()
    assert facula.equal(x.grad, y.grad)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_result_for_which_out_is_resized(backend):
    f = facula.compile(lambda x, out: facula.add(x, 1, out=out) * 2, backend=backend)
    for size in (0, 3, 0, 3):
        out = facula.empty(size)
        assert f(facula.ones(3), out).tolist() == [4] * 3 and out.tolist() == [2] * 3
