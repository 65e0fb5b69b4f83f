"""What Python handlers return, of every kind: checked and converted by the operator's schema.

The handlers are kernels of facula.library, dispatch modes, tensor subclasses and functions with a
backward of their own. Whatever they return, the process goes on.
"""

import facula
import pytest
from facula import library
from facula.utils._python_dispatch import TorchDispatchMode

T = facula.ones(2)

# The schema's results, and what may be returned for them.
GOOD = [
    ("str", "text"),
    ("str", ""),
    ("str?", None),
    ("str?", "text"),
    ("str[]", ["a", "b"]),
    ("int", 3),
    ("int?", None),
    ("float", 1.5),
    ("bool", True),
    ("Scalar", 2 + 1j),
    ("int[]", [1, 2]),
    ("int[]", []),
    ("int[]?", None),
    ("int[]?", [3]),
    ("float[]", [1.5, 2.0]),
    ("float[]?", None),
    ("bool[]", [True, False]),
    ("int[][]", [[1], [2, 3], []]),
    ("ScalarType", facula.float16),
    ("Device", facula.device("cpu")),
    ("Layout", facula.strided),
    ("MemoryFormat", facula.channels_last),
    ("Tensor[]", [T, T]),
    ("Tensor?[]", [None, T]),
    ("Tensor?", None),
    ("(int, str)", (3, "x")),  # two results
    ("((int, str))", (3, "x")),  # one, which is a tuple
    ("((Tensor, (float, bool))[])", [(T, (1.5, True))]),
    ("Dict(str, int)", {"a": 1, "b": 2}),
    ("Dict(str, Tensor[])", {"a": [T], "b": []}),
    ("Dict(int, str)?", None),
    ("Union(int, str)", "word"),
    ("Union(int, str)", 7),
    ("Any", {"x": [1, "y"]}),
]

BAD = [
    ("str", 3),
    ("str", b"bytes"),
    ("str", None),
    ("str[]", "text"),
    ("str[]", ["a", 1]),
    ("int", "3"),
    ("int", 2.5),
    ("int", 2**70),
    ("int", T),
    ("int[]", [1, "x"]),
    ("int[]", 5.5),
    ("int[]", None),
    ("float[]", ["x"]),
    ("bool[]", [1, "x"]),
    ("int[][]", [1, 2]),
    ("ScalarType", "float99"),
    ("Device", 3.5),
    ("Layout", "strided"),
    ("Generator", 3),
    ("Storage", 3),
    ("Tensor", [T]),
    ("Tensor", 3),
    ("Tensor", None),
    ("Tensor[]", T),
    ("Tensor[]", [T, None]),
    ("Tensor[]", {"a": T}),
    ("(int, str)", (3,)),
    ("(int, str)", ("x", 3)),
    ("Dict(str, int)", {1: 1}),
    ("Dict(str, int)", [("a", 1)]),
    ("Dict(str, int)", {"a": "b"}),
    ("Union(int, str)", 2.5),
]


def _ids(cases):
    return [f"{kind} of {value!r}"[:40] for kind, value in cases]


def _same(a, b):
    if isinstance(a, facula.Tensor):
        return isinstance(b, facula.Tensor) and a.tolist() == b.tolist()
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(_same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


@pytest.fixture
def lib():
    with library._scoped_library("handlers", "DEF") as made:
        yield made


class Returns(TorchDispatchMode):
    """A mode that answers the calls of one operator with a value."""

    def __init__(self, name, value):
        super().__init__()
        self.name, self.value = name, value

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.name().startswith(self.name):
            return self.value
        return func(*args, **(kwargs or {}))


class Wrapped(facula.Tensor):
    """A subclass that answers every call with the value it holds."""

    @staticmethod
    def __new__(cls, value):
        made = facula.Tensor._make_wrapper_subclass(cls, (2,))
        made.value = value
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return args[0].value


def _by_kernel(lib, value):
    lib.impl("f", lambda x: value, "CompositeExplicitAutograd")
    return facula.ops.handlers.f(T)


def _by_mode(lib, value):
    lib.impl("f", lambda x: pytest.fail("the mode answers"), "CPU")
    with Returns("handlers::f", value):
        return facula.ops.handlers.f(T)


def _by_subclass(lib, value):
    lib.impl("f", lambda x: pytest.fail("the subclass answers"), "CPU")
    return facula.ops.handlers.f(Wrapped(value))


HANDLERS = {"kernel": _by_kernel, "mode": _by_mode, "subclass": _by_subclass}


@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize(("kind", "value"), GOOD, ids=_ids(GOOD))
def test_good_results_come_through(lib, handler, kind, value):
    lib.define(f"f(Tensor x) -> {kind}")
    assert _same(HANDLERS[handler](lib, value), value)


@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize(("kind", "value"), BAD, ids=_ids(BAD))
def test_bad_results_are_refused(lib, handler, kind, value):
    lib.define(f"f(Tensor x) -> {kind}")
    with pytest.raises((RuntimeError, TypeError)) as error:
        HANDLERS[handler](lib, value)
    assert "handlers::f" in str(error.value), str(error.value)


def test_a_list_may_stand_for_several_results(lib):
    lib.define("f(Tensor x) -> (int, str[])")
    assert _by_kernel(lib, [3, ["a"]]) == (3, ["a"])
    for value in ((3,), (3, ["a"], 1), None, 3, {"a": 1, "b": 2}):
        with pytest.raises(RuntimeError, match="handlers::f.*expected a tuple of 2 results"):
            with Returns("handlers::f", value):
                facula.ops.handlers.f(T)


def test_the_error_names_the_result_and_what_came(lib):
    lib.define("f(Tensor x) -> (Tensor first, int[] second)")
    cases = [
        (("x", [1]), r"as result 0 \('first'\): expected Tensor or None; got str"),
        (
            (T, [1, "x"]),
            r"as result 1 \('second'\): expected int\[\]; got a list with str at pos.* 1",
        ),
        ((T, 2.5), r"as result 1 \('second'\): expected int\[\]; got float"),
    ]
    for value, text in cases:
        with Returns("handlers::f", value), pytest.raises(RuntimeError, match=text):
            facula.ops.handlers.f(T)


class _Raises:
    def __init__(self, error):
        self.error = error

    def __index__(self):
        raise self.error

    __float__ = __len__ = __iter__ = __index__


@pytest.mark.parametrize("kind", ["int", "float", "int[]", "str[]", "Tensor[]", "Dict(str, int)"])
def test_exceptions_of_the_object_go_on(lib, kind):
    lib.define(f"f(Tensor x) -> {kind}")
    with pytest.raises((KeyError, RuntimeError, TypeError)):
        _by_kernel(lib, _Raises(KeyError("mine")))
    assert _by_mode(lib, {"int": 3, "float": 1.5, "Dict(str, int)": {}}.get(kind, [])) is not None


def test_results_live_on_without_the_object(lib):
    """Texts, lists and dicts are copied: what the handler gave may go or change."""
    lib.define("f(Tensor x) -> (str, str[], Dict(str, int[]))")
    kept = []

    def kernel(x):
        kept[:] = ["".join(["te", "xt"]), ["a" * 3], {"k" * 3: [1, 2]}]
        return tuple(kept)

    lib.impl("f", kernel, "CPU")
    text, texts, numbers = facula.ops.handlers.f(T)
    kept[1].append("b")
    kept[2]["kkk"].append(3)
    kept.clear()
    assert (text, texts, numbers) == ("text", ["aaa"], {"kkk": [1, 2]})


# --- functions with a backward of their own


class _Passes(facula.autograd.Function):
    """Its forward returns a value of any kind, its backward another."""

    @staticmethod
    def forward(ctx, x, returned, gradient):
        ctx.gradient = gradient
        return returned(x)

    @staticmethod
    def backward(ctx, *grads):
        return ctx.gradient(*grads), None, None


def test_a_function_may_return_texts_and_lists_beside_tensors():
    x = facula.ones(2, requires_grad=True)
    y, text, others = _Passes.apply(x, lambda t: (t * 2, "text", [1, {"a": None}]), lambda g, *_: g)
    assert y.requires_grad and text == "text" and others == [1, {"a": None}]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


BAD_GRADIENTS = {
    "text": "text",
    "number": 3,
    "list": [T],
    "dict": {"a": T},
    "several": (T, T),
    "object": object(),
}


@pytest.mark.parametrize("kind", BAD_GRADIENTS)
def test_gradients_that_are_no_tensors_are_refused(kind):
    x = facula.ones(2, requires_grad=True)
    y = _Passes.apply(x, lambda t: t * 2, lambda g: BAD_GRADIENTS[kind])
    with pytest.raises((RuntimeError, TypeError)) as error:
        y.sum().backward()
    assert "_Passes" in str(error.value), str(error.value)
    assert x.grad is None


def test_a_gradient_of_the_wrong_shape_or_number_is_refused():
    x = facula.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="shape"):
        _Passes.apply(x, lambda t: t * 2, lambda g: facula.ones(3)).sum().backward()

    class TooMany(_Passes):
        @staticmethod
        def backward(ctx, *grads):
            return (*grads, None, None, T)

    with pytest.raises(RuntimeError, match="TooMany.*gradients"):
        TooMany.apply(x, lambda t: t * 2, None).sum().backward()


# --- overrides: __torch_function__ and its like


class Answers(facula.Tensor):
    answer = None

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return cls.answer


@pytest.mark.parametrize(
    "answer", ["text", None, {"a": [1]}, (T, 3), object()], ids=lambda v: str(v)[:16]
)
def test_an_override_may_return_anything_to_python(answer):
    x = facula.ones(2).as_subclass(Answers)
    Answers.answer = answer
    try:
        assert facula.sin(x) is answer and (x + 1) is answer and x.sum() is answer
    finally:
        Answers.answer = None


@pytest.mark.parametrize("answer", ["text", 3.5, None, [1], (1, "x")], ids=repr)
def test_an_override_where_a_number_is_needed(answer):
    x = facula.ones(2).as_subclass(Answers)
    Answers.answer = answer
    try:
        for ask in (len, lambda t: range(3)[t]):
            with pytest.raises((TypeError, ValueError, RuntimeError)):
                ask(x)
    finally:
        Answers.answer = None


# --- hooks


@pytest.mark.parametrize("value", ["text", 3, [T], {"a": T}, object()], ids=lambda v: str(v)[:9])
def test_hooks_that_return_no_tensor(value):
    x = facula.ones(2, requires_grad=True)
    x.register_hook(lambda g: value)
    with pytest.raises((RuntimeError, TypeError)):
        (x * 2).sum().backward()
    y = facula.ones(2, requires_grad=True)
    with facula.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: value):
        z = y * y
    with pytest.raises((RuntimeError, TypeError)):
        z.sum().backward()
    w = facula.ones(2, requires_grad=True)
    out = w * 2
    out.grad_fn.register_prehook(lambda grads: value)
    with pytest.raises((RuntimeError, TypeError)):
        out.sum().backward()
