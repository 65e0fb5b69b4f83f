"""Objects, subclasses and modes that take over functions, and operators below them."""

import copy
import pickle

import facula
import pytest
from facula import overrides
from facula.utils._python_dispatch import TorchDispatchMode

Tensor = facula.Tensor


class Like:
    """No tensor, but overrides functions."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, types, args, kwargs


class Sub(Tensor):
    """A subclass with the default override."""


class SubSub(Sub):
    pass


NN = facula.nn.functional
CALLS = {
    "operator": lambda x: facula.add(x, 1),
    "in a list": lambda x: facula.stack([facula.ones(1), x]),
    "by name": lambda x: facula.sum(facula.ones(2), dim=x),
    "nn operator": lambda x: NN.linear(x, x),
    "nn in Python": lambda x: NN.relu(x),
    "nn keyword": lambda x: NN.cross_entropy(facula.ones(1), target=x),
    "functional": lambda x: facula.split(x, 2),
    "functional list": lambda x: facula.broadcast_tensors([x]),
    "init": lambda x: facula.nn.init.uniform_(x),
    "init with fan": lambda x: facula.nn.init.kaiming_uniform_(x),
    "linalg": lambda x: facula.linalg.vector_norm(x),
    "special": lambda x: facula.special.expit(x),
    "ops overload": lambda x: facula.ops.aten.add.Tensor(x, x),
    "ops packet": lambda x: facula.ops.aten.add(x, x),
    "number protocol": lambda x: facula.ones(2) + x,
    "method argument": lambda x: facula.ones(2).add(x),
    "index": lambda x: facula.ones(2)[x],
    "is_floating_point": lambda x: facula.is_floating_point(x),
    "result_type": lambda x: facula.result_type(x, 1),
    "numel": lambda x: facula.numel(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_objects_that_are_no_tensors_take_over(name):
    func, types, _, _ = CALLS[name](Like())
    assert callable(func) and types == (Like,)


def test_what_the_override_is_told():
    x = Like()
    assert facula.add(x, 1) == (facula.add, (Like,), (x, 1), None)
    assert facula.add(x, other=1)[2:] == ((x,), {"other": 1})
    assert NN.relu(x)[0] is NN.relu


def test_assignment_under_an_index_takes_over():
    seen = []

    class Noting(Like):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)

    x = facula.ones(2)
    x[0] = Noting()
    assert seen == [Tensor.__setitem__]


def test_nobody_takes():
    class Refuses:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    for call in (lambda: facula.add(Refuses(), 1), lambda: NN.relu(Refuses())):
        with pytest.raises(TypeError):
            call()


def test_results_are_of_the_subclass():
    a, b = facula.ones(2).as_subclass(Sub), facula.ones(2).as_subclass(SubSub)
    assert type(a + 1) is Sub and type(a + b) is SubSub and type(b + a) is SubSub
    assert [type(t) for t in a.split(1)] == [Sub, Sub]
    assert type(facula.max(a, 0)[0]) is Sub
    assert type(a.tolist()) is list and type(a.shape) is facula.Size and a.grad is None


def test_subclass_before_its_base_whatever_the_order():
    order = []

    class First(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append(cls)
            return NotImplemented

    class Second(First):
        pass

    a, b = facula.ones(2).as_subclass(First), facula.ones(2).as_subclass(Second)
    with pytest.raises(TypeError):
        facula.add(a, b)
    assert order == [Second, First]


def test_switched_off():
    a = facula.ones(2).as_subclass(Sub)
    for off in (facula._C.DisableTorchFunctionSubclass, facula._C.DisableTorchFunction):
        with off():
            assert type(a + 1) is Tensor
    assert type(a + 1) is Sub


class Names(overrides.TorchFunctionMode):
    """Notes what it sees."""

    def __init__(self):
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(overrides.resolve_name(func))
        return func(*args, **(kwargs or {}))


SEEN = {
    "facula.tensor": lambda: facula.tensor([1.0]),
    "facula.as_tensor": lambda: facula.as_tensor([1.0]),
    "facula.ones": lambda: facula.ones(2),
    "facula.arange": lambda: facula.arange(3),
    "facula.functional.split": lambda: facula.split(_X, 1),
    "facula.nn.functional.relu": lambda: NN.relu(_X),
    "facula.nn.functional.linear": lambda: NN.linear(_X, _X),
    "facula.nn.init.uniform_": lambda: facula.nn.init.uniform_(_X),
    "facula.Tensor.sum": lambda: _X.sum(),
    "facula.Tensor.add": lambda: _X + 1,
    "facula.Tensor.tolist": lambda: _X.tolist(),
    "facula.Tensor.shape.__get__": lambda: _X.shape,
    "facula.Tensor.grad.__get__": lambda: _X.grad,
    "facula.Tensor.__getitem__": lambda: _X[0],
    "facula.Tensor.__len__": lambda: len(_X),
    "facula.Tensor.__repr__": lambda: repr(_X),
    "facula.can_cast": lambda: facula.can_cast(facula.int32, facula.float32),
    "facula.promote_types": lambda: facula.promote_types(facula.int32, facula.float32),
    "facula.is_complex": lambda: facula.is_complex(_X),
    "aten.add.Tensor": lambda: facula.ops.aten.add.Tensor(_X, _X),
}
_X = facula.ones(2)


@pytest.mark.parametrize("name", SEEN)
def test_modes_see_functions(name):
    with Names() as mode:
        SEEN[name]()
    assert mode.seen[0] == name


def test_modes_nest_and_come_off():
    with Names() as outer, Names() as inner:
        facula.ones(1)
        assert overrides._get_current_function_mode_stack() == [outer, inner]
    assert inner.seen == ["facula.ones"] and outer.seen == ["facula.ones"]
    assert overrides._len_torch_function_stack() == 0
    with pytest.raises(RuntimeError, match="empty mode stack"):
        facula._C._pop_torch_function_stack()


def test_a_mode_that_raises_comes_back():
    class Raises(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise KeyError("mine")

    with Raises() as mode:
        for _ in range(2):
            with pytest.raises(KeyError):
                facula.ones(1)
        assert overrides._get_current_function_mode() is mode


def test_questions():
    a = facula.ones(2).as_subclass(Sub)
    assert overrides.has_torch_function((1, a)) and overrides.has_torch_function_unary(a)
    assert not overrides.has_torch_function_variadic(1, facula.ones(1))
    assert overrides.is_tensor_like(Like()) and not overrides.is_tensor_like(1)
    assert overrides.is_tensor_method_or_property(Tensor.add)
    assert overrides.is_tensor_method_or_property(Tensor.grad.__get__)
    assert not overrides.is_tensor_method_or_property(facula.add)
    assert overrides.resolve_name(len) is None and overrides.resolve_name(3) is None
    with pytest.raises(TypeError):
        overrides.has_torch_function(1)
    with pytest.raises(TypeError):
        overrides.handle_torch_function()


def test_wrap_and_handle():
    @overrides.wrap_torch_function(lambda a, b=None: (a, b))
    def both(a, b=None):
        return "plain"

    x = Like()
    assert both(1) == "plain" and both(1, b=x) == (both, (Like,), (1,), {"b": x})
    with pytest.raises(TypeError):
        overrides.handle_torch_function(both, (1,), 1)


def test_overridable_functions_agree_with_what_happens():
    """Each listed function, given an object with an override, passes the call to it."""
    asked, ignored = overrides.get_testing_overrides(), overrides.get_ignored_functions()
    assert len(asked) > 800 and not set(asked) & ignored
    for listed in (
        facula.add,
        NN.relu,
        NN.linear,
        facula.split,
        Tensor.add,
        Tensor.grad.__get__,
        Tensor.__getitem__,
        facula.linalg.vector_norm,
        facula.nn.init.normal_,
        facula.is_floating_point,
    ):
        assert listed in asked
    for unlisted in (facula.ones, facula.tensor, facula.manual_seed, facula.get_default_dtype):
        assert unlisted not in asked
    failed = []
    for place, functions in overrides.get_overridable_functions().items():
        if place is Tensor or isinstance(place, type(Tensor.grad)):
            continue
        failed += [overrides.resolve_name(f) for f in functions if not _taken_over(f)]
    assert not failed


def _taken_over(function):
    x = Like()
    for count in range(1, 9):
        for kind in (x, [x]):
            try:
                result = function(*[kind] * count)
            except (TypeError, RuntimeError, ValueError):
                continue
            if isinstance(result, tuple) and result and result[0] is function:
                return True
    return False


def test_methods_are_overridable():
    class Counts(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return "taken"

    x, silent, seen = facula.ones(2).as_subclass(Counts), [], []
    for functions in overrides.get_overridable_functions().values():
        for getter in functions:
            if getattr(getter, "__name__", "") == "__get__":
                seen.clear()
                getter(x)
                if not seen:
                    silent.append(overrides.resolve_name(getter))
    assert not silent


# --- subclasses as objects


def test_as_subclass_keeps_history():
    x = facula.ones(2, requires_grad=True)
    y = x.as_subclass(Sub)
    assert y.requires_grad and y.grad_fn.name() == "AliasBackward0" and not y.is_leaf
    z = Tensor._make_subclass(Sub, x, True)
    assert z.is_leaf and z.requires_grad and z.data_ptr() == x.data_ptr()
    assert repr(facula.ones(2).as_subclass(Sub)) == "Sub([1., 1.])"


@pytest.mark.parametrize(
    "call",
    [
        lambda: facula.ones(1).as_subclass(int),
        lambda: facula.ones(1).as_subclass(3),
        lambda: facula.ones(1).as_subclass(),
        lambda: Tensor._make_subclass(int, facula.ones(1)),
        lambda: Tensor._make_subclass(3, facula.ones(1)),
        lambda: Tensor._make_subclass(Sub, "x"),
        lambda: Tensor._make_wrapper_subclass(Sub, (2,)),
        lambda: Tensor._make_wrapper_subclass(int, (2,)),
        lambda: Tensor._make_wrapper_subclass(Wrapper, "x"),
        lambda: Tensor._make_wrapper_subclass(),
    ],
)
def test_no_subclass(call):
    with pytest.raises(TypeError):
        call()


def test_subclasses_travel():
    x = facula.ones(2).as_subclass(Sub)
    x.note = [1]
    for travelled in (pickle.loads(pickle.dumps(x)), copy.copy(x)):
        assert type(travelled) is Sub and travelled.note == [1] and travelled.tolist() == [1.0, 1.0]


def test_deepcopy_needs_new_empty_of_the_class():
    class Faithful(Tensor):
        def new_empty(self, *args, **kwargs):
            return super().new_empty(*args, **kwargs).as_subclass(Faithful)

    x = facula.ones(2).as_subclass(Faithful)
    x.note = [1]
    y = copy.deepcopy(x)
    assert type(y) is Faithful and y.note == [1] and y.note is not x.note
    y[0] = 5
    assert x.tolist() == [1.0, 1.0]

    plain = facula.ones(2).as_subclass(Sub)
    with pytest.raises(RuntimeError, match="new_empty"):
        copy.deepcopy(plain)


class Wrapper(Tensor):
    """A tensor around another, seen below autograd."""

    __torch_function__ = facula._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner, **options):
        self = Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, device=inner.device, **options
        )
        self.inner, self.seen = inner, []
        return self

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        for arg in args:
            if isinstance(arg, Wrapper):
                arg.seen.append(str(func))
        if str(func) in ("aten.sym_size.default", "aten.sym_stride.default"):
            return args[0].inner.stride() if "stride" in str(func) else args[0].inner.shape
        plain = [arg.inner if isinstance(arg, Wrapper) else arg for arg in args]
        result = func(*plain, **(kwargs or {}))
        return Wrapper(result) if isinstance(result, Tensor) else result


def test_wrapper_without_memory():
    w = Wrapper(facula.ones(2, 3), requires_grad=True)
    assert w.shape == (2, 3) and w.stride() == (3, 1) and w.requires_grad and w.is_leaf
    y = (w * 3).sum()
    assert type(y) is Wrapper and y.inner.item() == 18.0
    y.backward()
    assert type(w.grad) is Wrapper and w.grad.inner.tolist() == [[3.0] * 3] * 2


GEOMETRY = {
    "sizes": (
        [
            "aten.sym_size.default",
            "aten.sym_stride.default",
            "aten.dim.default",
            "aten.sym_numel.default",
            "aten.is_contiguous.default",
        ],
        dict(dispatch_sizes_strides_policy="sizes"),
    ),
    "strides": (
        ["aten.sym_stride.default", "aten.is_contiguous.default"],
        dict(dispatch_sizes_strides_policy="strides"),
    ),
    "device": (["prim.device.default"], dict(dispatch_device=True)),
    "layout": (["prim.layout.default"], dict(dispatch_layout=True)),
    "nothing": ([], {}),
}


@pytest.mark.parametrize("name", GEOMETRY)
def test_geometry_that_the_class_answers(name):
    expected, options = GEOMETRY[name]
    w = Wrapper(facula.ones(2, 3), **options)
    assert w.shape == (2, 3) and w.stride() == (3, 1) and w.dim() == 2 and w.numel() == 6
    assert w.is_contiguous() and str(w.device) == "cpu" and w.layout == facula.strided
    assert sorted(w.seen) == sorted(expected)
    with pytest.raises(ValueError, match="sizes_strides_policy"):
        Wrapper(facula.ones(2), dispatch_sizes_strides_policy="bad")


def test_wrapper_arguments():
    make = Tensor._make_wrapper_subclass
    assert make(Wrapper, (2, 3), strides=(1, 2)).stride() == (1, 2)
    assert make(Wrapper, (2, 3), (1, 2), 5).storage_offset() == 5
    assert make(Wrapper, (2, 3), device="meta").is_meta
    assert make(
        Wrapper, (2, 3), layout=facula.strided, pin_memory=True, storage_size=100
    ).shape == (2, 3)
    with pytest.raises(RuntimeError, match="dimensionality"):
        make(Wrapper, (2, 3), strides=(1,))
    with pytest.raises(RuntimeError, match="floating point"):
        make(Wrapper, (2,), dtype=facula.int32, requires_grad=True)


# --- __torch_dispatch__


class Dispatched(TorchDispatchMode):
    """Notes operators."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_modes_see_operators_below_autograd():
    x = facula.ones(2, requires_grad=True)
    with Dispatched() as mode:
        (x * 2).sum().backward()
    assert mode.seen[:2] == ["aten.mul.Tensor", "aten.sum.default"]
    assert mode.seen.count("aten.mul.Tensor") == 2 and x.grad.tolist() == [2.0, 2.0]


def test_dispatch_refused_or_raised():
    class Refuses(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    class Raises(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError("mine")

    with Refuses(), pytest.raises(TypeError):
        facula.ones(1)
    with Raises(), pytest.raises(KeyError):
        facula.ones(1)
    assert facula._C._dispatch_mode_depth() == 0


def test_reentrant_dispatch_records_autograd():
    class Doubles(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if str(func) != "aten.exp.default":
                return func(*args, **(kwargs or {}))
            with overrides.enable_reentrant_dispatch(), facula.enable_grad():
                x = args[0].detach().requires_grad_()
                y = (x * x).sum()
                return facula.autograd.grad(y, x)[0]

    with Doubles():
        assert facula.full((2,), 3.0).exp().tolist() == [6.0, 6.0]


def test_redispatch_skips_one_level():
    seen = []

    class Logs(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return overrides.redispatch_function(func, types, args, kwargs)

    @overrides.wrap_torch_function(lambda a, b: (a, b))
    def scaled(a, b):
        return a * b + 1

    x = facula.ones(1).as_subclass(Logs)
    assert scaled(x, x).tolist() == [2.0]
    assert seen[:2] == ["scaled", "mul"]


def test_a_class_may_begin_to_override():
    """What is known of a class holds until the class changes."""

    class Late(facula.Tensor):
        __torch_function__ = facula._C._disabled_torch_function_impl

    x = facula.ones(2).as_subclass(Late)
    for _ in range(3):
        assert type(x + x) is type(facula.add(x, x)) is type(x.relu()) is facula.Tensor
    Late.__torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: "taken")
    assert x + x == facula.add(x, x) == x.relu() == x.shape == x.item() == x[0] == "taken"
    del Late.__torch_function__
    assert type(x + x) is type(facula.add(x, x)) is Late


def test_a_handler_may_change_the_modes_below_it():
    """What is on the stack when a handler returns is what its mode goes back onto."""

    class Passes(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Swaps(Passes):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            facula._C._pop_dispatch_mode()
            facula._C._push_dispatch_mode(Passes())
            return func(*args, **(kwargs or {}))

    with Passes(), Swaps():
        for _ in range(3):
            facula.ones(2) + 1
    assert facula._C._dispatch_mode_depth() == 0
