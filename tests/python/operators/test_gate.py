"""The gate: operators that each break an easy assumption, taken through every layer of a call.

A row is a function of tensors around one operator; a column is a layer. Each layer must give what
the plain call gives, or, where `refused` names the layer, raise an error that says why.
"""

from dataclasses import dataclass

import facula
import numpy as np
import pytest
from facula.autograd.gradcheck import gradcheck
from facula.utils._python_dispatch import TorchDispatchMode
from samples.checks import assert_same_values, geometry_of, is_tensor, tensors_of, to_array

aten = facula.ops.aten


@dataclass
class Row:
    """A function of float64 tensors of the given shapes, and a check of its results."""

    function: object
    shapes: list
    check: object  # check(results as arrays, inputs as arrays)
    operators: tuple  # one of these is seen by a dispatch mode
    grad: bool = True
    refused: tuple = ()  # layers that raise
    random: bool = False


def inputs_of(row, seed=0):
    rng = np.random.default_rng(seed)
    return [facula.from_numpy(rng.uniform(0.5, 2, shape)) for shape in row.shapes]


def run(row, function, inputs):
    """The results, from the same random state each time."""
    facula.manual_seed(17)
    return tensors_of(function(*inputs))


def equals(reference):
    """A check against what NumPy gives."""

    def check(results, inputs):
        wanted = reference(*inputs)
        wanted = wanted if isinstance(wanted, (list, tuple)) else [wanted]
        assert len(results) == len(wanted)
        for got, expected in zip(results, wanted, strict=True):
            np.testing.assert_allclose(got, expected, 1e-9, 1e-9)

    return check


def add_out(x, y):
    return facula.add(x, y, out=facula.empty_like(x))


def index_put(x, values):
    rows, columns = facula.tensor([0, 1, 0]), facula.tensor([2, 0, 2])
    return x.clone().index_put_((rows, columns), values, accumulate=True)


def index_put_reference(x, values):
    x = x.copy()
    np.add.at(x, (np.array([0, 1, 0]), np.array([2, 0, 2])), values)
    return x


def foreach_add(x, y):
    changed = [x.clone(), y.clone()]
    facula._foreach_add_(changed, 1.5)
    return changed


def batch_norm(x, weight, bias):
    return aten.native_batch_norm.default(x, weight, bias, None, None, True, 0.1, 1e-5)


def batch_norm_reference(x, weight, bias):
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    scale = 1 / np.sqrt(variance + 1e-5)
    normal = (x - mean[:, None]) * scale[:, None]
    return normal * weight[:, None] + bias[:, None], mean, scale


def check_dropout(results, inputs):
    out, mask = results
    assert mask.dtype == bool
    np.testing.assert_allclose(out, inputs[0] * mask * 2)


def check_uniform(results, inputs):
    values = results[0]
    assert values.shape == inputs[0].shape
    assert ((values >= 2) & (values < 3)).all()
    assert len(np.unique(values)) == values.size


def convolution_backward(grad, x, weight):
    return aten.convolution_backward.default(
        grad, x, weight, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, False]
    )[:2]


def convolution_backward_reference(grad, x, weight):
    grad_x, grad_weight = np.zeros_like(x), np.zeros_like(weight)
    height, width = weight.shape[2:]
    for i in range(grad.shape[2]):
        for j in range(grad.shape[3]):
            g = grad[:, :, i, j]
            window = (slice(None), slice(None), slice(i, i + height), slice(j, j + width))
            grad_x[window] += np.einsum("no,ockl->nckl", g, weight)
            grad_weight += np.einsum("no,nckl->ockl", g, x[window])
    return grad_x, grad_weight


def resize_storage(x):
    y = x.clone()
    count = y.untyped_storage().nbytes()
    aten.resize_storage_bytes_.default(y, 0)
    aten.resize_storage_bytes_.default(y, count)
    return y.copy_(x)


def max_reference(x):
    return x.max(1), x.argmax(1)


ROWS = {
    "add_number": Row(lambda x: facula.add(x, 2.5), [(2, 3)], equals(lambda x: x + 2.5), ("add",)),
    "add_out": Row(add_out, [(2, 3), (3,)], equals(lambda x, y: x + y), ("add",), grad=False),
    "add_promotion": Row(
        lambda x: facula.add(x.float(), facula.ones(3, dtype=facula.int64)),
        [(2, 3)],
        equals(lambda x: x.astype("f4") + 1),
        ("add",),
        grad=False,
    ),
    "log1p_": Row(lambda x: x.clone().log1p_(), [(2, 3)], equals(np.log1p), ("log1p_", "log1p")),
    "sum": Row(lambda x: facula.sum(x, 0), [(2, 3)], equals(lambda x: x.sum(0)), ("sum",)),
    "max_dim": Row(lambda x: facula.max(x, 1), [(2, 3)], equals(max_reference), ("max",)),
    "reshape": Row(
        lambda x: facula.reshape(x, (3, -1)),
        [(2, 3)],
        equals(lambda x: x.reshape(3, -1)),
        ("view", "reshape", "_reshape_alias"),
    ),
    "split": Row(
        lambda x: aten.split.Tensor(x, 2, 1),
        [(2, 3)],
        equals(lambda x: [x[:, :2], x[:, 2:]]),
        ("split",),
    ),
    "cat": Row(
        lambda x, y: facula.cat([x, y], 1),
        [(2, 3), (2, 1)],
        equals(lambda x, y: np.concatenate([x, y], 1)),
        ("cat",),
    ),
    "squeeze_": Row(
        lambda x: x.clone().squeeze_(1),
        [(2, 1, 3)],
        equals(lambda x: x[:, 0]),
        ("squeeze_", "squeeze"),
    ),
    "index_put_": Row(
        index_put, [(2, 3), (3,)], equals(index_put_reference), ("index_put_", "index_put")
    ),
    "nonzero": Row(
        lambda x: facula.nonzero(x - 1 > 0),
        [(2, 3)],
        equals(lambda x: np.argwhere(x - 1 > 0)),
        ("nonzero",),
        grad=False,
        refused=("meta", "vmap"),
    ),
    "native_batch_norm": Row(
        batch_norm, [(4, 2, 3), (2,), (2,)], equals(batch_norm_reference), ("native_batch_norm",)
    ),
    "native_dropout": Row(
        lambda x: aten.native_dropout.default(x, 0.5, True),
        [(5, 7)],
        check_dropout,
        ("native_dropout",),
        refused=("vmap",),
        random=True,
    ),
    "uniform_": Row(
        lambda x: x.clone().uniform_(2, 3),
        [(5, 7)],
        check_uniform,
        ("uniform_", "uniform"),
        grad=False,
        refused=("vmap",),
        random=True,
    ),
    "_foreach_add_": Row(
        foreach_add,
        [(2, 3), (4,)],
        equals(lambda x, y: [x + 1.5, y + 1.5]),
        ("_foreach_add_", "_foreach_add", "add_", "add"),
    ),
    "convolution_backward": Row(
        convolution_backward,
        [(2, 3, 2, 2), (2, 1, 3, 3), (3, 1, 2, 2)],
        equals(convolution_backward_reference),
        ("convolution_backward",),
    ),
    "resize_storage_bytes_": Row(
        resize_storage,
        [(2, 3)],
        equals(lambda x: x),
        ("resize_storage_bytes_", "copy_", "copy"),
        grad=False,
        refused=("vmap",),
    ),
}
rows = pytest.mark.parametrize("name", ROWS)


def refuses(call, name):
    """The call raises, in words that a user can act on."""
    with pytest.raises((NotImplementedError, RuntimeError, ValueError)) as caught:
        call()
    assert len(str(caught.value)) > 20, f"{name}: {caught.value!r}"


@rows
def test_cpu(name):
    row = ROWS[name]
    inputs = inputs_of(row)
    results = run(row, row.function, inputs)
    row.check([to_array(r) for r in results], [to_array(x) for x in inputs])


@rows
def test_meta(name):
    row = ROWS[name]
    inputs = inputs_of(row)
    meta = [x.to("meta") for x in inputs]
    if name in ("index_put_", "add_promotion"):
        pytest.skip("the row makes tensors on the CPU; the table of samples runs it on meta")
    if "meta" in row.refused:
        return refuses(lambda: run(row, row.function, meta), name)
    results = run(row, row.function, meta)
    assert all(r.is_meta for r in results)
    assert geometry_of(results) == geometry_of(run(row, row.function, inputs))


@rows
def test_autograd(name):
    row = ROWS[name]
    inputs = [x.requires_grad_() for x in inputs_of(row)]

    def smooth(*tensors):
        return tuple(r for r in run(row, row.function, tensors) if r.requires_grad)

    if row.grad:
        assert smooth(*inputs), "no result requires grad"
        assert gradcheck(smooth, inputs)
        return
    try:
        results = run(row, row.function, inputs)
    except RuntimeError as error:
        assert name == "add_out" and "out=" in str(error), error
        return
    assert all(r.grad_fn is not None or not r.requires_grad for r in results)


@rows
def test_vmap(name):
    """A batch gives what a loop over it gives, or the layer says why it cannot."""
    row = ROWS[name]
    pairs = [inputs_of(row, seed) for seed in range(3)]
    batch = [facula.stack(list(same)) for same in zip(*pairs, strict=True)]
    batched = facula.func.vmap(lambda *tensors: tuple(tensors_of(row.function(*tensors))))
    if "vmap" in row.refused:
        return refuses(lambda: batched(*batch), name)
    results = tensors_of(batched(*batch))
    loop = [run(row, row.function, one) for one in pairs]
    for place, got in enumerate(results):
        assert_same_values(got, facula.stack([one[place] for one in loop]))


@rows
def test_autocast(name):
    """Under autocast each operator works, in the dtype that its record's class asks for."""
    row = ROWS[name]
    inputs = [x.float() for x in inputs_of(row)]
    plain = run(row, row.function, inputs)
    with facula.autocast("cpu", dtype=facula.bfloat16):
        results = run(row, row.function, inputs)
    for got, wanted in zip(results, plain, strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(to_array(got), to_array(wanted), 2e-2, 2e-2)


def test_autocast_classes():
    """prod runs in float32, cat in the widest dtype, a matrix product in bfloat16, add as it is."""
    half = facula.ones(2, 2, dtype=facula.bfloat16)
    full = facula.ones(2, 2)
    with facula.autocast("cpu", dtype=facula.bfloat16):
        assert facula.mm(full, full).dtype == facula.bfloat16
        assert facula.prod(half).dtype == facula.float32
        assert facula.sum(half).dtype == facula.bfloat16
        assert facula.cat([half, full]).dtype == facula.float32
        assert facula.add(half, half).dtype == facula.bfloat16
        with facula.autocast("cpu", enabled=False):
            assert facula.mm(full, full).dtype == facula.float32
    assert facula.mm(full, full).dtype == facula.float32


class Recorder(TorchDispatchMode):
    """Notes the operators that it sees and lets them go on."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func._schema.name.partition("::")[2])
        return func(*args, **(kwargs or {}))


@rows
def test_dispatch_mode(name):
    row = ROWS[name]
    inputs = inputs_of(row)
    plain = run(row, row.function, inputs)
    with Recorder() as mode:
        results = run(row, row.function, inputs)
    assert set(mode.names) & set(row.operators), mode.names
    assert_same_values(results, plain)


@rows
def test_functionalized(name):
    """Without in-place changes below: the same results, and only functional operators seen."""
    row = ROWS[name]
    inputs = inputs_of(row)
    plain = run(row, row.function, inputs)
    functional = facula.func.functionalize(lambda *ts: tuple(tensors_of(row.function(*ts))))
    assert_same_values(run(row, functional, inputs), plain)


@rows
def test_traced(name):
    """The recorded graph computes on other inputs what the function computes."""
    row = ROWS[name]
    graph = facula._trace.trace(
        lambda *ts: tuple(tensors_of(row.function(*ts))), tuple(inputs_of(row))
    )
    assert any(operator in str(graph) for operator in row.operators), str(graph)
    others = inputs_of(row) if name == "nonzero" else inputs_of(row, seed=5)
    plain = run(row, row.function, others)
    facula.manual_seed(17)
    assert_same_values(tensors_of(graph.run(tuple(others))), plain)


# --- what the layers must show beyond the table


def test_vmap_grad_grad():
    """Second derivatives of x^3, for each element of a batch."""
    x = facula.tensor([1.0, 2.0, 3.0], dtype=facula.float64)
    second = facula.func.vmap(facula.func.grad(facula.func.grad(lambda v: v * v * v)))
    assert_same_values(second(x), 6 * x)


def test_functionalize_view_then_in_place():
    """A change through a view reaches base and sibling, and the input is written back."""

    def change(x):
        y = x.view(-1)
        y[1:3].add_(10)
        return x * 2, y

    x, same = facula.arange(4.0).reshape(2, 2), facula.arange(4.0).reshape(2, 2)
    wanted = change(same)
    assert_same_values(facula.func.functionalize(change)(x), wanted)
    assert_same_values(x, same)


def test_functionalize_storage_resize():
    """Data of a storage that was freed cannot be read; after it is back, it can."""

    def fill_again(x):
        y = x + 1
        aten.resize_storage_bytes_.default(y, 0)
        aten.resize_storage_bytes_.default(y, 12)
        y.copy_(x)
        return y * 2

    def read_freed(x):
        y = x + 1
        aten.resize_storage_bytes_.default(y, 0)
        return y * 2

    x = facula.ones(3)
    assert_same_values(facula.func.functionalize(fill_again)(x), x * 2)
    with pytest.raises(RuntimeError):
        facula.func.functionalize(read_freed)(x)


def test_joint_graph():
    """One trace of a function and its gradient holds both."""

    def joint(x):
        x = x.detach().requires_grad_()
        y = facula.log1p(x * x).sum()
        return y, facula.autograd.grad(y, x)[0]

    x = facula.tensor([0.5, 1.0, 2.0], dtype=facula.float64)
    graph = facula._trace.trace(joint, (x,))
    graph.lint()
    called = [name for name, _ in graph.nodes]
    forward, backward = called[:4], called[4:]
    assert [name.partition(".")[0] for name in forward] == [
        "aten::detach",
        "aten::mul",
        "aten::log1p",
        "aten::sum",
    ]
    assert any("div" in name or "reciprocal" in name for name in backward)
    assert not any(name.partition(".")[0].endswith("_") for name in called)
    other = x * 3
    loss, gradient = tensors_of(graph.run((other,)))
    assert_same_values(loss, np.log1p(to_array(other) ** 2).sum())
    assert_same_values(gradient, 2 * to_array(other) / (1 + to_array(other) ** 2))


class Wrapper(facula.Tensor):
    """A tensor around another, which sees every operator on it."""

    @staticmethod
    def __new__(cls, inner):
        return facula.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def unwrap(x):
            return x.inner if isinstance(x, Wrapper) else x

        result = func(*map(unwrap, args), **{k: unwrap(v) for k, v in (kwargs or {}).items()})
        return cls(result) if is_tensor(result) else result


def test_wrapper_subclass_under_a_mode():
    """The mode sees the call on the wrapper; while it handles that it is off, as in PyTorch."""
    x = Wrapper(facula.tensor([1.0, 2.0]))
    with Recorder() as mode:
        y = facula.add(x, 1)
    assert isinstance(y, Wrapper)
    assert y.inner.tolist() == [2.0, 3.0]
    assert mode.names == ["add"]


def test_wrapper_subclass_under_tracing():
    """The stack is entered again on the inner tensors: the graph holds what the wrapper did."""

    def wrapped(t):
        return facula.mul(facula.add(Wrapper(t), 1), 2).inner

    x = facula.tensor([1.0, 2.0])
    graph = facula._trace.trace(wrapped, (x,))
    assert [name.partition(".")[0] for name, _ in graph.nodes] == ["aten::add", "aten::mul"]
    assert graph.run((x * 3,))[0].tolist() == [8.0, 14.0]


def test_override_from_python():
    """A Python kernel takes the place of a built-in one, and the built-in one comes back."""
    library = facula.library.Library("aten", "IMPL")
    library.impl("log1p", lambda x: x * 0 + 42, "CPU")
    try:
        assert facula.log1p(facula.ones(2)).tolist() == [42.0, 42.0]
    finally:
        library._destroy()
    np.testing.assert_allclose(facula.log1p(facula.ones(2)).tolist(), np.log([2, 2]), 1e-6)


def test_define_from_python():
    """An operator made at run time goes through the same layers."""
    library = facula.library.Library("test_gate", "DEF")
    library.define("thrice(Tensor self) -> Tensor")
    library.impl("thrice", lambda x: x * 3, "CompositeImplicitAutograd")
    try:
        x = facula.ones(2, requires_grad=True)
        facula.ops.test_gate.thrice(x).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]
        with Recorder() as mode:
            facula.ops.test_gate.thrice(x.detach())
        assert "mul" in mode.names
    finally:
        library._destroy()


def test_kernel_on_meta():
    """A tensor of a terabyte is multiplied and summed without memory."""
    x = facula.empty(1 << 19, 1 << 19, device="meta")
    y = (facula.mm(x, x) + 1).sum(0)
    assert y.shape == (1 << 19,) and y.is_meta
