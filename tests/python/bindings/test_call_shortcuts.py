"""What the shortest ways of a call remember or leave out changes nothing that a program sees."""

import inspect
import pickle
import sys
import types

import facula
import numpy as np
import pytest

F = facula.nn.functional


# --- sizes that are known


def test_sizes_are_those_of_the_tensor():
    shapes = [(a, b, c) for a in range(4) for b in range(8) for c in range(8)]
    shapes += [(), (5,), (1, 2, 3, 4, 5), (1, 2, 3, 1, 2, 3), (2**40, 0)]
    for _ in range(2):
        for shape in shapes:
            found = facula.empty(shape, device="meta").shape
            assert type(found) is facula.Size
            assert found == shape


def test_sizes_follow_a_change_of_geometry():
    t = facula.zeros(2, 3)
    before = t.shape
    t.resize_(3, 4)
    assert (before, t.shape, t.t_().shape) == ((2, 3), (3, 4), (4, 3))
    t.unsqueeze_(0)
    assert t.shape == (1, 4, 3)


# --- properties


def test_properties_are_descriptors_of_the_usual_kind():
    shape = facula.Tensor.shape
    assert isinstance(shape, types.GetSetDescriptorType)
    assert inspect.isgetsetdescriptor(shape)
    assert (shape.__name__, shape.__objclass__) == ("shape", facula._C.TensorBase)
    assert shape is facula._C.TensorBase.__dict__["shape"]
    assert shape.__get__(facula.ones(2)) == (2,)
    assert shape.__get__(None, facula.Tensor) is shape
    assert "shape" in repr(shape)
    assert facula.Tensor.dtype.__doc__


def test_properties_refuse_other_objects_and_values():
    with pytest.raises(TypeError, match="doesn't apply to a 'int' object"):
        facula.Tensor.shape.__get__(3)
    with pytest.raises(AttributeError):
        facula.ones(2).shape = (1, 2)
    t = facula.ones(2)
    t.requires_grad = True
    assert t.requires_grad
    with pytest.raises(AttributeError):
        del facula.ones(2).dtype


def test_properties_are_seen_by_subclasses_and_modes():
    seen = []

    class Mine(facula.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    class Watch(facula.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    assert facula.ones(2).as_subclass(Mine).shape == (2,)
    with Watch():
        assert facula.ones(2).dtype is facula.float32
    getters = [facula.Tensor.shape.__get__, facula.Tensor.dtype.__get__]
    assert [f for f in seen if f in getters] == getters


def test_methods_are_descriptors_of_the_usual_kind():
    item = facula.Tensor.item
    assert type(item) is types.MethodDescriptorType
    assert item.__qualname__ == "TensorBase.item"
    assert item is facula._C.TensorBase.item
    assert item(facula.tensor(3.0)) == facula.nn.Parameter(facula.tensor(3.0)).item() == 3.0
    assert pickle.loads(pickle.dumps(item)) is item
    with pytest.raises(TypeError):
        item(3)
    with pytest.raises(TypeError):
        item()


# --- results that are arguments


def test_results_in_place_are_the_argument():
    a, b = facula.ones(3), facula.ones(3)
    count = sys.getrefcount(a)
    for _ in range(5):
        assert a.add_(b) is a
        assert facula.add(b, b, out=a) is a
        assert a.zero_() is a
        assert a.relu_() is a
        assert a.fill_(2.0) is a
        a += 1
    assert a.tolist() == [3.0] * 3
    assert sys.getrefcount(a) == count
    a.mul_(b).add_(1).sub_(b)
    assert a.tolist() == [3.0] * 3


def test_a_result_in_place_may_be_all_that_is_left():
    assert facula.ones(2).add_(1).mul_(3).tolist() == [6.0, 6.0]
    assert facula.add(facula.ones(2), 1, out=facula.empty(2)).tolist() == [2.0, 2.0]
    w = facula.ones(2, requires_grad=True)
    y = facula.zeros(2).add_(w)
    assert y.requires_grad
    y.mul_(w).sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_results_in_place_of_other_layers():
    a = facula.ones(2, 2)
    with facula.autocast("cpu", dtype=facula.bfloat16):
        assert a.add_(1) is a
    turned = facula.func.vmap(lambda x: x.add_(1).mul_(2))(a)
    assert turned.tolist() == a.tolist() == [[6.0, 6.0]] * 2
    z = facula.ones(2, dtype=facula.complex64).conj()
    assert z.mul_(2j) is z
    assert z.tolist() == [2j, 2j]


# --- geometry of fresh tensors


@pytest.mark.parametrize(
    "sizes, strides",
    [
        ((), ()),
        ((3,), (1,)),
        ((2, 1, 3), (3, 3, 1)),
        ((2, 0, 3), (3, 3, 1)),
        ((0,), (1,)),
        ((1, 2, 3, 4, 5), (120, 60, 20, 5, 1)),
        ((1, 2, 1, 2, 1, 2), (8, 4, 4, 2, 2, 1)),
    ],
)
def test_fresh_tensors_are_contiguous(sizes, strides):
    t = facula.empty(sizes)
    assert (t.shape, t.stride(), t.numel()) == (sizes, strides, int(np.prod(sizes)))
    assert t.is_contiguous()


@pytest.mark.parametrize("sizes", [(-1,), (2, -3), (2**40, 2**40), (2**62, 2)])
def test_sizes_that_cannot_be_raise(sizes):
    with pytest.raises(RuntimeError):
        facula.empty(sizes)


@pytest.mark.parametrize(
    "view, contiguous",
    [
        (lambda t: t[1], True),
        (lambda t: t[:, 1:2], False),
        (lambda t: t[1:2, 1:3], True),
        (lambda t: t.t(), False),
        (lambda t: t[:0], True),
        (lambda t: t.as_strided((1, 4), (9, 1)), True),
    ],
)
def test_views_know_whether_they_are_contiguous(view, contiguous):
    t = facula.arange(16.0).view(4, 4)
    v = view(t)
    assert v.is_contiguous() is contiguous
    assert (v.numpy() == v.contiguous().numpy()).all()


# --- broadcasts of a few rows

BROADCASTS = [
    ((4, 1), (3,)),
    ((1, 3), (4, 1)),
    ((2, 1, 3), (1, 4, 1)),
    ((2, 3, 1, 2), (3, 4, 2)),
    ((1,), (2, 2, 2, 2, 2)),
    ((17, 1), (3,)),
    ((0, 1), (3,)),
    ((4, 1), (1,)),
]


@pytest.mark.parametrize("a, b", BROADCASTS)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_small_broadcasts(a, b, dtype):
    x = np.arange(np.prod(a), dtype=dtype).reshape(a) + 1
    y = np.arange(np.prod(b), dtype=dtype).reshape(b) * 10
    for p, q in ((x, y), (y, x)):
        found = facula.from_numpy(p) - facula.from_numpy(q)
        assert (found.numpy() == p - q).all()
        assert found.shape == (p - q).shape


def test_small_broadcasts_of_other_strides_dtypes_and_numbers():
    x, y = np.arange(12.0).reshape(3, 4), np.arange(3)
    a, b = facula.from_numpy(x).t(), facula.from_numpy(y)
    assert ((a * b).numpy() == x.T * y).all()
    assert (facula.where(b > 1, a, 7.0).numpy() == np.where(y > 1, x.T, 7.0)).all()
    out = facula.zeros(4, 3, dtype=facula.float64)
    facula.add(a, b, out=out)
    assert (out.numpy() == x.T + y).all()
    out += b[:1]
    assert (out.numpy() == x.T + y + y[:1]).all()


# --- functions that are operators when given few arguments

DIRECT = [name for name in dir(F) if isinstance(getattr(F, name), facula._C.overridable)]
DIRECT = [name for name in DIRECT if hasattr(getattr(F, name), "_direct")]
MATRIX = facula.linspace(-3, 3, 6).view(2, 3)
CLASSES, WEIGHT = facula.tensor([2, 0]), facula.tensor([1.0, 2.0, 3.0])
ARGUMENTS = {
    "cross_entropy": (MATRIX, CLASSES, WEIGHT),
    "nll_loss": (MATRIX, CLASSES, WEIGHT),
    "layer_norm": (MATRIX, (3,), WEIGHT, -WEIGHT, 0.25),
    "rms_norm": (MATRIX, (3,), WEIGHT, 0.25),
    "threshold": (MATRIX, 0.5, 20.0),
}


@pytest.mark.parametrize("name", DIRECT)
def test_direct_functions_are_their_operators(name):
    function = getattr(F, name)
    _, least, most = function._direct
    parameters = list(inspect.signature(function).parameters.values())
    assert sum(p.default is p.empty for p in parameters) == least <= most
    arguments = ARGUMENTS.get(name, (MATRIX, 0.75))[:most]
    assert len(arguments) == most
    for n in range(least, most + 1):
        # The function in Python itself.
        assert facula.equal(function(*arguments[:n]), function.__wrapped__(*arguments[:n]))


def test_direct_functions_take_what_they_took():
    x = facula.arange(6.0).view(2, 3)
    classes = facula.tensor([2, 0])
    weight = facula.tensor([1.0, 2.0, 3.0])
    same = [
        (F.cross_entropy(x, classes), F.cross_entropy(x, target=classes)),
        (F.cross_entropy(x, classes, weight), F.cross_entropy(x, classes, weight=weight)),
        (F.layer_norm(x, (3,), weight), F.layer_norm(x, [3], weight=weight)),
        (F.layer_norm(x, (3,), None, None, 0.5), F.layer_norm(x, (3,), eps=0.5)),
        (F.elu(-x, 2.0), F.elu(-x, alpha=2.0)),
    ]
    for direct, other in same:
        assert facula.equal(direct, other)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'target'"):
        F.cross_entropy(x)
    with pytest.raises(TypeError, match="takes from 2 to 5 positional arguments"):
        F.layer_norm(x, (3,), None, None, 1e-5, True)


def test_direct_functions_are_seen_under_their_own_names():
    seen = []

    class Watch(facula.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    class Mine(facula.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            with facula._C.DisableTorchFunctionSubclass():
                return function(*args, **(kwargs or {}))

    x = facula.ones(2, 3)
    with Watch():
        F.layer_norm(x, (3,))
    assert seen[0] is F.layer_norm
    seen.clear()
    F.relu(x.as_subclass(Mine))
    assert seen[0] is F.relu


# --- names in dicts


def test_a_name_of_a_module_changes_at_once(monkeypatch):
    def norm():
        return F.layer_norm

    before = norm()
    for value in (1, 2, before):
        monkeypatch.setattr(F, "layer_norm", value)
        assert norm() is value
    facula.fresh_name = 1
    assert facula.fresh_name == 1
    del facula.fresh_name
    with pytest.raises(AttributeError):
        _ = facula.fresh_name


def test_attributes_of_modules_change_at_once():
    layer = facula.nn.Linear(2, 2)
    x = facula.ones(1, 2)
    layer(x)
    other = facula.nn.Parameter(facula.zeros(2, 2))
    layer.weight = other
    assert layer.weight is other
    assert facula.equal(layer(x), layer.bias.view(1, 2))
    layer.note = 1
    assert layer.note == 1
    layer.note = 2
    assert layer.note == 2
    del layer.note, layer.weight
    for name in ("note", "weight"):
        with pytest.raises(AttributeError, match=name):
            getattr(layer, name)
    layer.weight = 3  # a plain attribute now
    assert layer.weight == 3


def test_attributes_of_a_module_come_in_pythons_order():
    class Base(facula.nn.Module):
        kind = "class"

        @property
        def twice(self):
            return 2 * self.factor

    m = Base()
    assert m.kind == "class"
    m.kind = "instance"
    assert m.kind == "instance"
    m.factor = 4
    m.__dict__["twice"] = "hidden by the property"
    assert m.twice == 8
    del m.kind
    assert m.kind == "class"


def test_many_modules_of_one_name_keep_apart():
    layers = [facula.nn.Linear(1, 1) for _ in range(1200)]
    weights = [layer.weight for layer in layers]
    assert all(layer.weight is w for layer, w in zip(layers, weights, strict=True))


# --- the autograd layer


def test_a_view_of_a_plain_tensor_gets_a_history_later():
    base = facula.zeros(4)
    view = base.view(2, 2).t()
    w = facula.ones(4, requires_grad=True)
    base.add_(w)
    assert view.requires_grad
    view.sum().backward()
    assert w.grad.tolist() == [1.0] * 4


def test_forward_mode_passes_views_of_plain_tensors():
    fw = facula.autograd.forward_ad
    with fw.dual_level():
        base = fw.make_dual(facula.ones(4), facula.arange(4.0))
        view = base.view(2, 2).t()
        assert fw.unpack_dual(view).tangent.tolist() == [[0.0, 2.0], [1.0, 3.0]]
