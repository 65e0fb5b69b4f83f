"""Compiled functions and modules do what eager ones do: values, gradients, aliases, effects."""

import copy

import facula
import facula.nn.functional as F
import pytest
from facula import nn
from facula._functorch.aot_autograd import (
    aot_export_joint_simple,
    aot_export_module,
    compile_graph_module,
)
from facula.functorch.compile import (
    aot_function,
    aot_module,
    aot_module_simplified,
    default_partition,
    make_boxed_func,
    memory_efficient_fusion,
    min_cut_rematerialization_partition,
    nop,
)
from facula.fx import symbolic_trace

PARTITIONS = (default_partition, min_cut_rematerialization_partition)


def _leaf(*shape):
    count = facula.Size(shape).numel()
    return (facula.arange(float(count)).reshape(shape) / 7 - 0.4).requires_grad_()


def _fixed(*shape):
    return _leaf(*shape).detach()


def _mutates(x, y):
    y.add_(1)
    return x * y


def _mutates_view(x, y):
    y.view(-1)[0] = 5.0
    return x * y


def _mutates_with_history(x, y):
    y.mul_(x)
    return y.sin()


def _mutates_geometry(x, y):
    y.t_()
    return x.t() * y


def _shared_results(x):
    y = x * 2
    return y, y.t(), y[0]


def _mutates_own(x):
    y = x.clone()
    y[0].mul_(2)
    return y.exp()


def _drops(x):
    return F.dropout(x, 0.5) * x


def _shared_arguments():
    base = _fixed(3, 4)
    return [base, base[0]]


def _writes_to_shared(x, y):
    y.add_(1)
    return x * 2


def _steps(w, g):
    with facula.no_grad():
        w.sub_(g)
    return w.sum()


def _chain(x, w, b):
    return F.gelu(F.layer_norm(F.linear(x, w, b), (4,))).sin().cos().sum()


def _attention(q):
    return F.scaled_dot_product_attention(q, q, q, is_causal=True)


CASES = {
    "pointwise": (lambda x: x.tanh() * x, lambda: [_leaf(2, 3)]),
    "chain": (_chain, lambda: [_fixed(2, 3), _leaf(4, 3), _leaf(4)]),
    "loss": (
        lambda x, w: F.cross_entropy(x @ w, facula.tensor([0, 2])),
        lambda: [_leaf(2, 3), _leaf(3, 3)],
    ),
    "attention": (_attention, lambda: [_leaf(1, 2, 3, 4)]),
    "convolution": (
        lambda x, w: F.max_pool2d(F.conv2d(x, w, padding=1).relu(), 2),
        lambda: [_leaf(1, 2, 4, 4), _leaf(3, 2, 3, 3)],
    ),
    "several results": (
        lambda x: (x.sin(), x.cos().detach(), x > 0, 3),
        lambda: [_leaf(2, 3)],
    ),
    "no gradients": (lambda x: x * 2 + 1, lambda: [_fixed(2, 3)]),
    "an argument": (lambda x, y: (x, y * x), lambda: [_leaf(2, 3), _fixed(2, 3)]),
    "view of an argument": (lambda x: (x.view(-1), x * 2), lambda: [_leaf(2, 3)]),
    "shared results": (_shared_results, lambda: [_leaf(2, 3)]),
    "changed argument": (_mutates, lambda: [_leaf(2, 3), _fixed(2, 3)]),
    "argument changed by a view": (_mutates_view, lambda: [_leaf(2, 3), _fixed(2, 3)]),
    "argument that gets a history": (_mutates_with_history, lambda: [_leaf(2, 3), _fixed(2, 3)]),
    "argument that is no leaf": (_mutates, lambda: [_leaf(2, 3), _leaf(2, 3).clone()]),
    "argument of other strides": (_mutates_geometry, lambda: [_leaf(2, 3), _fixed(2, 3)]),
    "changed inside": (_mutates_own, lambda: [_leaf(2, 3)]),
    "random": (_drops, lambda: [_leaf(4, 5)]),
    "twice the same": (lambda x, y: x * y.sin(), lambda: [_leaf(3)] * 2),
    "constants": (
        lambda x: x * facula.ones(3) + facula.tensor(2.0),
        lambda: [_leaf(2, 3)],
    ),
    "complex": (lambda x: (x * (1 + 2j)).abs(), lambda: [_leaf(2, 3)]),
    "complex views": (
        lambda x: (lambda y: (y, facula.view_as_real(y)))(facula.view_as_complex(x * 2)),
        lambda: [_leaf(3, 2)],
    ),
    "views of what is not returned": (
        lambda x: (lambda y: (y.t(), y[0]))(x * 2),
        lambda: [_leaf(2, 3)],
    ),
    "detached argument": (lambda x: (x.detach(), x * 2), lambda: [_leaf(3)]),
    "arguments that share memory": (_writes_to_shared, _shared_arguments),
    "written without gradient": (_steps, lambda: [_leaf(3), _fixed(3)]),
    "nothing returned": (lambda x: None, lambda: [_leaf(2)]),
    "half": (lambda x: F.softmax(x.to(facula.bfloat16), -1), lambda: [_leaf(2, 3)]),
}


def _run(function, make_args):
    args = make_args()
    facula.manual_seed(3)
    results = function(*args)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    tensors = [r for r in results if isinstance(r, facula.Tensor) and r.requires_grad]
    loss = [r.abs().sum() if r.is_complex() else r.float().sum() for r in tensors]
    if loss:
        sum(loss).backward()
    return args, results


def _facts(t):
    return t.stride(), t.requires_grad, t.is_leaf


def _gradient(t):
    return t.grad if t.is_leaf else None


@pytest.mark.parametrize("partition", PARTITIONS, ids=["default", "min_cut"])
@pytest.mark.parametrize("name", CASES)
def test_results_gradients_and_effects_are_eager_s(name, partition):
    function, make_args = CASES[name]
    compiled = aot_function(function, nop, partition_fn=partition)
    for _ in range(2):
        args, expected = _run(function, make_args)
        own, results = _run(compiled, make_args)
        for a, b in zip(args + expected, own + results, strict=True):
            if not isinstance(a, facula.Tensor):
                assert a == b
                continue
            assert facula.equal(a, b) and a.dtype is b.dtype
            assert _facts(a) == _facts(b)
            mine, other = _gradient(b), _gradient(a)
            assert (mine is None) == (other is None)
            assert other is None or facula.equal(mine, other)


def test_results_share_memory_as_eager_s_do():
    x = _leaf(2, 3)
    same, view = aot_function(lambda x: (x, x[0]), nop)(x)
    assert same is x and view._base is x
    y, t, row = aot_function(_shared_results, nop)(x)
    storage = y.untyped_storage().data_ptr()
    assert [r.untyped_storage().data_ptr() for r in (t, row)] == [storage] * 2
    with facula.no_grad():
        row.fill_(9.0)
    assert y[0].tolist() == [9.0] * 3 and t[:, 0].tolist() == [9.0] * 3


def test_a_cotangent_that_is_not_defined_gives_none():
    called = []

    def backward_compiler(graph, inputs):
        called.append([node.name for node in graph.graph.find_nodes(op="placeholder")])
        return make_boxed_func(graph.forward)

    f = aot_function(lambda x, w: (x.sin(), w.cos()), nop, backward_compiler)
    x, w = _leaf(3), _leaf(3)
    f(x, w)[0].sum().backward()
    assert facula.equal(x.grad, x.cos()) and w.grad is None
    assert called == [["primals_1", "primals_2", "tangents_1"]]
    x.grad = None
    first, second = f(x, w)
    (first.sum() + second.sum()).backward()
    assert facula.equal(w.grad, -w.sin()) and len(called) == 2


def test_a_function_is_recorded_once_for_each_geometry():
    graphs = []

    def compiler(graph, inputs):
        graphs.append([tuple(t.shape) for t in inputs])
        return make_boxed_func(graph.forward)

    f = aot_function(lambda x: x * 2, compiler)
    for n in (2, 3, 2):
        f(facula.ones(n))
    assert graphs == [[(2,)], [(3,)]]
    with facula.no_grad():
        assert not f(_leaf(4)).requires_grad


def test_saved_values_are_checked():
    x, y = _leaf(3), _fixed(3)
    out = aot_function(lambda x, y: x * y, nop)(x, y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_the_minimum_cut_saves_fewer_bytes_and_no_views():
    def f(x, w):
        return (x @ w).sin().exp().cos().t().sum()

    saved = {}

    def compiler(name):
        def compile(graph, inputs):
            outputs = graph.graph.output_node().args[0]
            saved[name] = [(str(o.target), o.meta["val"].numel()) for o in outputs[1:]]
            return make_boxed_func(graph.forward)

        return compile

    for partition in PARTITIONS:
        aot_function(f, compiler(partition.__name__), nop, partition)(_leaf(4, 5), _leaf(5, 6))
    default, least = (saved[p.__name__] for p in PARTITIONS)
    assert sum(n for _, n in least) < sum(n for _, n in default)
    assert sorted(least) == [("aten.mm.default", 24), ("primals_1", 20), ("primals_2", 30)]


def test_random_numbers_are_drawn_once():
    backward = []

    def keep(graph, inputs):
        backward.append(graph.code)
        return make_boxed_func(graph.forward)

    f = aot_function(_drops, nop, keep, min_cut_rematerialization_partition)
    f(_leaf(4, 5)).sum().backward()
    assert "bernoulli" not in backward[0]


def _model():
    facula.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


def test_modules_train_as_eager_ones():
    eager = _model()
    compiled = aot_module(copy.deepcopy(eager), nop, partition_fn=PARTITIONS[1])
    optimizers = [facula.optim.SGD(m.parameters(), 0.1, 0.9) for m in (eager, compiled)]
    x = _fixed(6, 4)
    for _ in range(3):
        for m, optimizer in zip((eager, compiled), optimizers, strict=True):
            optimizer.zero_grad()
            F.mse_loss(m(x), facula.ones(6, 2)).backward()
            optimizer.step()
    inner = compiled.orig_module.state_dict()
    assert all(facula.equal(v, inner[k]) for k, v in eager.state_dict().items())


def test_running_statistics_are_results_of_the_graph():
    module, codes = nn.BatchNorm1d(3), []

    def keep(graph, inputs):
        codes.append(graph.code)
        return graph

    with facula.no_grad():
        aot_module(module, keep)(facula.arange(12.0).reshape(4, 3))
    eager = nn.BatchNorm1d(3)
    eager(facula.arange(12.0).reshape(4, 3))
    assert "_native_batch_norm_legit_functional" in codes[0]
    assert facula.equal(module.running_mean, eager.running_mean)
    assert facula.equal(module.running_var, eager.running_var)


def test_backends_are_given_graphs_by_aot_module_simplified():
    module = _model()
    x = _fixed(6, 4)
    graph = symbolic_trace(copy.deepcopy(module))
    f = aot_module_simplified(graph, [x], nop)
    module(x).sum().backward()
    f(x).sum().backward()
    own = dict(graph.named_parameters())
    assert all(facula.equal(p.grad, own[n].grad) for n, p in module.named_parameters())
    again = compile_graph_module(symbolic_trace(_model()), [x], nop, nop, PARTITIONS[1])
    assert facula.equal(again(x), _model()(x))


def test_memory_efficient_fusion_gives_eager_s_results():
    x = _leaf(3)
    memory_efficient_fusion(lambda x: F.silu(x).sin())(x).sum().backward()
    other = _leaf(3)
    F.silu(other).sin().sum().backward()
    assert facula.allclose(x.grad, other.grad)
    with pytest.raises(AssertionError):
        aot_module(3, nop)


def test_a_second_derivative_raises():
    x = _leaf(3)
    (grad,) = facula.autograd.grad(
        aot_function(lambda x: x.sin(), nop)(x).sum(), x, create_graph=True
    )
    with pytest.raises(RuntimeError):
        grad.sum().backward()


def test_a_joint_graph_is_exported_with_its_signature():
    module = _model()
    x = _fixed(6, 4)

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, x):
            return (self.inner(x).sum(), x * 2)

    graph, signature = aot_export_module(Loss(), [x], trace_joint=False)
    assert signature.inputs_to_parameters["arg0_1"] == "inner.0.weight"
    assert "inner.1.num_batches_tracked" in signature.buffers_to_mutate.values()
    assert len(signature.user_outputs) == 2 and signature.user_inputs == ["arg9_1"]
    graph, signature = aot_export_module(Loss(), [x], trace_joint=True, output_loss_index=0)
    assert not [n for n in graph.graph.find_nodes(op="placeholder") if "tangents" in n.name]
    names = signature.backward_signature.gradients_to_parameters.values()
    assert set(names) == set(dict(Loss().named_parameters()))
    values = [*dict(Loss().named_parameters()).values(), *dict(Loss().named_buffers()).values(), x]
    with facula.no_grad():
        results = graph(*values)
    module(x).sum().backward()
    grads = [r for r in results[-len(values) :] if r is not None]
    assert all(
        facula.allclose(g, p.grad, atol=1e-6)
        for g, p in zip(grads, module.parameters(), strict=True)
    )
    with pytest.raises(RuntimeError, match="output_loss_index"):
        aot_export_module(Loss(), [x], trace_joint=True)


def test_a_simple_joint_graph_refuses_effects():
    graph = aot_export_joint_simple(lambda x, y: x * y, [_leaf(3), _leaf(3)], trace_joint=True)
    out, gx, gy = graph(_fixed(3), _fixed(3), facula.ones(3))
    assert facula.equal(gx, _fixed(3)) and facula.equal(out, gx * gy)
    with pytest.raises(RuntimeError, match="changes no argument"):
        aot_export_joint_simple(lambda x: x.add_(1), [_fixed(3)], trace_joint=False)


def test_graphs_are_drawn(tmp_path):
    from facula.functorch.compile import draw_graph

    graph = symbolic_trace(lambda x: x.sin())
    draw_graph(graph, str(tmp_path / "graph.dot"))
    assert '"x" -> "sin"' in (tmp_path / "graph.dot").read_text()
    with pytest.raises(ValueError, match=".svg or .dot"):
        draw_graph(graph, str(tmp_path / "graph.png"))
