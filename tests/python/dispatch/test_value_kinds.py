"""Arguments that are no tensors and no numbers: texts, lists, tuples, dicts, objects."""

import facula
import pytest
from facula import library


@pytest.fixture
def lib():
    with library._scoped_library("kinds", "DEF") as made:
        yield made


class Setting:
    """An object with a type of its own."""

    def __init__(self, value):
        self.value = value


class Finer(Setting):
    pass


ARGUMENTS = [
    ("str", "text"),
    ("str[]", ["a", "b"]),
    ("int[]", [1, 2]),
    ("float[]", [1.5, 2.0]),
    ("bool[]", [True, False]),
    ("Tensor?[]", [None, facula.ones(2)]),
    ("int[]?", None),
    ("float[]?", [0.5]),
    ("int[][]", [[1, 2], []]),
    ("(int, str)", (3, "x")),
    ("(Tensor, (float, bool))", (facula.ones(1), (1.5, True))),
    ("Dict(str, int)", {"a": 1, "b": 2}),
    ("Dict(str, Tensor)", {"weight": facula.zeros(2)}),
    ("Dict(int, str)[]", [{1: "a"}, {}]),
    ("Union(int, str)", "word"),
    ("Union(int, str)", 7),
]


def _same(a, b):
    if isinstance(a, facula.Tensor):
        return isinstance(b, facula.Tensor) and a.tolist() == b.tolist()
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(_same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


@pytest.mark.parametrize(("kind", "value"), ARGUMENTS, ids=[a[0] for a in ARGUMENTS])
def test_argument(lib, kind, value):
    lib.define(f"f(Tensor x, {kind} value) -> Tensor")
    came = []
    lib.impl("f", lambda x, v: (came.append(v), x.clone())[1], "CPU")
    facula.ops.kinds.f(facula.ones(1), value)
    assert _same(came[0], value)


UNFIT = [
    ("(int, str)", (3,)),
    ("(int, str)", [3, "x"]),
    ("(int, str)", ("x", 3)),
    ("Dict(str, int)", {1: 1}),
    ("Dict(str, int)", [("a", 1)]),
    ("Union(int, str)", facula.ones(2)),
    ("str[]", "text"),
]


@pytest.mark.parametrize(("kind", "value"), UNFIT, ids=[str(u[1])[:20] for u in UNFIT])
def test_unfit_argument_raises(lib, kind, value):
    lib.define(f"f(Tensor x, {kind} value) -> Tensor")
    lib.impl("f", lambda x, v: x.clone(), "CPU")
    with pytest.raises((TypeError, RuntimeError)):
        facula.ops.kinds.f(facula.ones(1), value)


def test_objects_are_of_the_class_that_the_schema_names(lib):
    name = f"__torch__.{Setting.__module__}.{Setting.__qualname__}"
    lib.define(f"f(Tensor x, {name} setting) -> Tensor")
    lib.impl("f", lambda x, setting: x * setting.value, "CPU")
    assert facula.ops.kinds.f(facula.ones(1), Setting(3)).item() == 3.0
    assert facula.ops.kinds.f(facula.ones(1), Finer(4)).item() == 4.0
    with pytest.raises((TypeError, RuntimeError)):
        facula.ops.kinds.f(facula.ones(1), object())


def test_more_than_32_arguments_are_refused_when_defined(lib):
    many = ", ".join(f"int a{i}" for i in range(33))
    with pytest.raises(RuntimeError, match="at most 32 arguments and 8 results; got 33 and 1"):
        lib.define(f"f({many}) -> Tensor")
    results = ", ".join(["Tensor"] * 9)
    with pytest.raises(RuntimeError, match="at most 32 arguments and 8 results; got 1 and 9"):
        lib.define(f"f(Tensor x) -> ({results})")
