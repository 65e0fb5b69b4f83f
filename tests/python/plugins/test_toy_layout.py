"""A layout in a library of its own: tests/cpp/plugins/toy_layout.cpp, matrices of a diagonal."""

import copy
import ctypes
import io
import pickle

import facula
import pytest
from plugin_library import compiled

DEVICES = ("cpu", "meta")
KIND = "toy_layout.DiagonalTensor"


@pytest.fixture(scope="session")  # a process loads a library once
def library(tmp_path_factory):
    path = compiled("toy_layout", tmp_path_factory.mktemp("toy"))
    facula.ops.load_library(path)
    opened = ctypes.CDLL(str(path))
    opened.toy_layout_loops_run.restype = ctypes.c_int64
    return opened


@pytest.fixture(scope="module")
def ops(library):
    return facula.ops.toy_layout


def dense(t):
    return facula.ops.toy_layout.to_dense(t)


@pytest.mark.parametrize("device", DEVICES)
def test_what_it_says_of_itself(ops, device):
    t = ops.diagonal(facula.ones(3, device=device, dtype=facula.float64))
    assert t.shape == (3, 3) and t.size(1) == 3 and t.dim() == 2 and t.numel() == 9
    assert t.dtype == facula.float64 and t.device.type == device
    assert str(t.layout) == "facula.diagonal" and t.layout is facula.library.layout("diagonal")
    assert t.layout is not facula.strided
    flags = (t.is_sparse, t.is_sparse_csr, t.is_quantized, t.is_nested, t.is_mkldnn)
    assert flags == (False,) * 5
    assert not t.is_contiguous() and t.is_meta == (device == "meta")
    with pytest.raises(RuntimeError, match="diagonal tensors do not have strides"):
        t.stride()


@pytest.mark.parametrize("device", DEVICES)
def test_kernels(library, ops, device):
    a = ops.diagonal(facula.tensor([1.0, 2.0], device=device))
    b = ops.diagonal(facula.tensor([3.0, 4.0], device=device))
    before = library.toy_layout_loops_run()
    total, product, scaled, negative = a + b, a * b, a * 2, -a
    by_dense = a * facula.ones(2, 2, device=device)
    results = (total, product, scaled, negative, by_dense, facula.add(a, b, alpha=3))
    assert all(r.layout is a.layout and r.device.type == device for r in results)
    # The CPU has a kernel of its own for two diagonals; the other device takes the one for any.
    assert library.toy_layout_loops_run() == before + (1 if device == "cpu" else 0)
    if device == "meta":
        assert dense(total).shape == (2, 2)
        return
    expected = ([4.0, 6.0], [3.0, 8.0], [2.0, 4.0], [-1.0, -2.0], [1.0, 2.0], [10.0, 14.0])
    for r, v in zip(results, expected, strict=True):
        assert dense(r).tolist() == [[v[0], 0.0], [0.0, v[1]]]


@pytest.mark.parametrize("device", DEVICES)
def test_operator_that_it_lacks(ops, device):
    t = ops.diagonal(facula.ones(2, device=device))
    backend = {"cpu": "DiagonalCPU", "meta": "DiagonalMeta"}[device]
    cases = {
        "aten::cumsum": lambda: t.cumsum(0),
        "aten::sin": lambda: t.sin(),
        "aten::sin_": lambda: t.sin_(),
        "aten::mm": lambda: facula.mm(t, t),
        "aten::view": lambda: t.view(4),
        "aten::select.int": lambda: t[0],
        "aten::cat": lambda: facula.cat([t, t]),
        "aten::sub.out": lambda: facula.sub(t, t, out=t),
    }
    for name, call in cases.items():
        with pytest.raises(NotImplementedError) as error:
            call()
        text = f"Could not run '{name}' with arguments from the '{backend}' backend"
        assert text in str(error.value), name
        assert "layout diagonal" in str(error.value) and f"on {device}" in str(error.value)


def test_devices_that_are_mixed_are_refused(library, ops):
    a, b = (ops.diagonal(facula.ones(2, device=d)) for d in DEVICES)
    before = library.toy_layout_loops_run()
    text = "Expected all tensors to be on the same device, but found at least two devices, cpu and"
    for call in (
        lambda: a * b,
        lambda: a + b,
        lambda: a.add_(b),
        lambda: a * facula.ones(2, 2, device="meta"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()
    assert library.toy_layout_loops_run() == before


def test_what_needs_a_storage(ops):
    t = ops.diagonal(facula.ones(2))
    with pytest.raises(NotImplementedError, match="Cannot access storage of DiagonalTensorImpl"):
        t.untyped_storage()
    for call in (t.data_ptr, t.tolist):
        with pytest.raises(RuntimeError, match="data pointer of Tensor that doesn't have storage"):
            call()
    with pytest.raises(TypeError, match="can't convert diagonal layout tensor to numpy"):
        t.numpy()
    with pytest.raises(RuntimeError, match="layout other than torch.strided"):
        t.__dlpack__()
    with pytest.raises((RuntimeError, NotImplementedError)):
        ops.diagonal(facula.ones(1)).item()
    with pytest.raises(NotImplementedError):
        t.data = facula.ones(2, 2)


def test_in_place_out_and_versions(ops):
    a, b = ops.diagonal(facula.tensor([1.0, 2.0])), ops.diagonal(facula.tensor([3.0, 4.0]))
    version = a._version
    assert a.add_(b) is a and a._version == version + 1
    assert ops.values(a).tolist() == [4.0, 6.0]
    # No kernel of its own: by mul and copy_, which it has.
    assert a.mul_(2) is a and ops.values(a).tolist() == [8.0, 12.0]
    out = ops.diagonal(facula.zeros(2))
    assert facula.mul(a, b, out=out) is out and ops.values(out).tolist() == [24.0, 48.0]


def test_headers_over_one_payload(ops):
    t = ops.diagonal(facula.tensor([1.0, 2.0])).requires_grad_()
    d = t.detach()
    assert d.layout is t.layout and not d.requires_grad
    version = t._version
    d.add_(d)
    assert ops.values(t.detach()).tolist() == [2.0, 4.0] and t._version == version + 1
    assert t.data.layout is t.layout


def test_views_know_their_base(ops):
    t = ops.diagonal(facula.ones(2))
    alias = facula.ops.aten.alias(t)
    assert alias._base is t
    alias.add_(alias)
    assert ops.values(t).tolist() == [2.0, 2.0]


def test_gradients(ops):
    v = facula.tensor([1.0, 2.0], requires_grad=True)
    w = facula.tensor([3.0, 5.0], requires_grad=True)
    d = ops.diagonal(v)
    y = d * ops.diagonal(w) + d * 2
    assert y.requires_grad and y.layout is d.layout
    dense(y).sum().backward()
    assert v.grad.tolist() == [5.0, 7.0] and w.grad.tolist() == [1.0, 2.0]
    v.grad = None
    (dense(ops.diagonal(v) * ops.diagonal(v))).sum().backward()
    assert v.grad.tolist() == [2.0, 4.0]


def test_leaf_of_the_layout(ops):
    t = ops.diagonal(facula.tensor([1.0, 2.0])).requires_grad_()
    for step in (1, 2):
        ops.values(t * t).sum().backward()
        assert t.grad.layout is t.layout
        assert ops.values(t.grad).tolist() == [2.0 * step, 4.0 * step]
    t.grad = None
    # A dense gradient of the same sizes.
    dense(t).mul(3).sum().backward()
    assert ops.values(t.grad).tolist() == [3.0, 3.0]


def test_second_derivative(ops):
    v = facula.tensor([1.0, 2.0], requires_grad=True)
    d = ops.diagonal(v)
    (g,) = facula.autograd.grad(dense(d * d * d).sum(), v, create_graph=True)
    assert g.tolist() == [3.0, 12.0]
    (h,) = facula.autograd.grad(g.sum(), v)
    assert h.tolist() == [6.0, 12.0]


def test_changed_after_it_was_saved(ops):
    t = ops.diagonal(facula.tensor([1.0, 2.0])).requires_grad_()
    u = t * 1
    y = u * u
    u.add_(u)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        ops.values(y).sum().backward()


def test_to_and_factories(ops):
    t = ops.diagonal(facula.tensor([1.0, 2.0]))
    assert t.to(facula.float64).dtype == facula.float64
    assert t.to("meta").device.type == "meta" and t.to("meta").layout is t.layout
    assert t.clone().layout is t.layout and t.to("cpu") is t
    z = facula.zeros(3, 3, layout=t.layout, dtype=facula.float64)
    assert z.layout is t.layout and ops.values(z).tolist() == [0.0] * 3
    with pytest.raises(NotImplementedError, match="layout"):
        facula.ones(3, 3, layout=t.layout)
    with pytest.raises(RuntimeError, match="square matrix"):
        facula.zeros(3, layout=t.layout)


def test_print(ops):
    t = ops.diagonal(facula.ones(3, dtype=facula.float64)).requires_grad_()
    assert repr(t) == (
        "tensor(diagonal of 3 values, size=(3, 3), dtype=facula.float64,\n"
        "       layout=facula.diagonal, requires_grad=True)"
    )


def test_copies_and_pickles(ops):
    t = ops.diagonal(facula.tensor([1.0, 2.0])).requires_grad_()
    through_file = io.BytesIO()
    facula.save(t, through_file)
    through_file.seek(0)
    for made in (
        copy.deepcopy(t),
        pickle.loads(pickle.dumps(t)),
        facula.load(through_file),
        copy.copy(t),
    ):
        assert made.layout is t.layout and made.requires_grad
        assert ops.values(made.detach()).tolist() == [1.0, 2.0]
    other = copy.deepcopy(t).detach()
    other.add_(other)
    assert ops.values(t.detach()).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "parts, size", [([], (2, 2)), ([None], (2, 2)), ([[1.0]], (2, 2)), ([[1.0, 2.0]], (2,))]
)
def test_parts_of_a_bad_file(ops, parts, size):
    tensors = [p if p is None else facula.tensor(p) for p in parts]
    with pytest.raises(ValueError, match="do not fit"):
        facula._layouts.rebuild(
            "toy_layout.DiagonalTensor", size, facula.float32, "cpu", tensors, 0
        )
    with pytest.raises(RuntimeError, match="kind 'nobody'"):
        facula._layouts.rebuild("nobody", (2, 2), facula.float32, "cpu", [], False)


def test_function_gradients(ops):
    t = ops.diagonal(facula.tensor([1.0, 2.0]))
    found = facula.func.grad(lambda x: ops.values(x * x).sum())(t)
    assert found.layout is t.layout and ops.values(found).tolist() == [2.0, 4.0]
    once = facula.func.grad(lambda x: ops.values(x * x * x).sum())
    twice = facula.func.grad(lambda x: ops.values(once(x)).sum())(t)
    assert ops.values(twice).tolist() == [6.0, 12.0]


def test_transforms_and_modes_say_no(ops):
    t = ops.diagonal(facula.ones(2))
    with pytest.raises(NotImplementedError, match="vmap.*layout diagonal"):
        facula.vmap(lambda x: x + x)(t)
    doubled = facula.func.functionalize(lambda x: x + x)(t)  # passed on as it is
    assert doubled.layout is t.layout and ops.values(doubled).tolist() == [2.0, 2.0]
    with pytest.raises(NotImplementedError, match="layout diagonal"):
        facula.func.functionalize(lambda x: x.add_(x))(t)
    on = {device: t.to(device) for device in DEVICES}
    for device in DEVICES:
        with facula._C._FakeMode(True), pytest.raises(NotImplementedError, match="FakeTensorMode"):
            there = on[device]
            there + there
    with pytest.raises(NotImplementedError, match="FakeTensorMode"):
        facula._C._make_fake(t)
    out = facula.vmap(lambda x: x * 2)(facula.ones(2))
    assert out.tolist() == [2.0, 2.0]


def test_loaded_once(library, ops, tmp_path):
    facula.ops.load_library(library._name)  # it is there, and is not started again
    another = compiled("toy_layout", tmp_path, options=("-DANOTHER",))
    with pytest.raises(RuntimeError, match="registered already"):
        facula.ops.load_library(another)
