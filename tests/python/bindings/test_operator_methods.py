"""Tensor.__add__ and its kin called as methods, and what classes make of Python's operators."""

import facula
import pytest
from facula import nn

CALLS = {
    "__add__": ({"other": 2, "alpha": 3}, 9.0),
    "__radd__": ({"other": 2}, 5.0),
    "__sub__": ({"other": 2, "alpha": 2}, -1.0),
    "__rsub__": ({"other": 2}, -1.0),
    "__mul__": ({"other": 2}, 6.0),
    "__truediv__": ({"other": 2, "rounding_mode": "floor"}, 1.0),
    "__rtruediv__": ({"other": 6}, 2.0),
    "__rdiv__": ({"other": 6}, 2.0),
    "__floordiv__": ({"other": 2}, 1.0),
    "__rmod__": ({"other": 5}, 2.0),
    "__pow__": ({"exponent": 2}, 9.0),
    "__rpow__": ({"other": 2}, 8.0),
    "__matmul__": ({"other": facula.full((1,), 2.0)}, 6.0),
    "__eq__": ({"other": 3}, 1.0),
    "__lt__": ({"other": 3}, 0.0),
    "__iadd__": ({"other": 2}, 5.0),
    "__ipow__": ({"exponent": 2}, 9.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_keywords_of_the_operator(name):
    keywords, expected = CALLS[name]
    assert getattr(facula.full((1,), 3.0), name)(**keywords).item() == expected


@pytest.mark.parametrize("name", ["__add__", "__radd__", "__rsub__", "__eq__", "__ipow__"])
@pytest.mark.parametrize("args, keywords", [((), {}), (("a",), {}), ((), {"value": 2})])
def test_what_does_not_fit_is_left_to_the_other_operand(name, args, keywords):
    assert getattr(facula.ones(2), name)(*args, **keywords) is NotImplemented


def test_no_tensor_to_call_on():
    with pytest.raises(TypeError):
        facula.Tensor.__add__(2, facula.ones(2))
    with pytest.raises(AttributeError, match="expected a tensor"):
        facula.Tensor.__rdiv__(2, facula.ones(2))


class Plain(facula.Tensor):
    """Leaves all operators alone."""


class Mixin:
    """Has no operators, until a test gives it one."""


class Mixed(Mixin, facula.Tensor):
    """May get operators from its other base."""


@pytest.mark.parametrize("cls", [facula.Tensor, nn.Parameter, Plain, Mixed, Mixin])
def test_methods_put_into_classes_are_used_while_they_are_there(cls):
    tensor = facula.ones(2).as_subclass(Mixed if cls is Mixin else cls)
    had = "__add__" in vars(cls)
    cls.__add__ = cls.__radd__ = cls.__eq__ = lambda self, other: "mine"
    try:
        assert tensor + 1 == "mine"
        assert 1 + tensor == "mine"
        assert (tensor == 1) == "mine"
        assert (tensor - 1).tolist() == [0.0, 0.0]
    finally:
        del cls.__add__, cls.__radd__, cls.__eq__
    assert not had
    assert (tensor + 1).tolist() == (1 + tensor).tolist() == [2.0, 2.0]
    assert (tensor == 1).tolist() == [True, True]


def test_method_of_a_class_statement_and_of_those_below():
    class Doubling(facula.Tensor):
        def __mul__(self, other):
            return super().__mul__(2 * other)

    class Below(Doubling):
        pass

    for cls in (Doubling, Below):
        tensor = facula.ones(2).as_subclass(cls)
        assert (tensor * 3).tolist() == [6.0, 6.0]
        assert (3 * tensor).tolist() == [3.0, 3.0]
        assert (tensor + 3).tolist() == [4.0, 4.0]


def test_overrides_see_the_operator_with_its_keywords():
    seen = []

    class Watching(facula.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func.__name__, sorted(kwargs or ())))
            return super().__torch_function__(func, types, args, kwargs)

    tensor = facula.ones(2).as_subclass(Watching)
    tensor.__add__(other=2, alpha=3)
    tensor + 1
    assert seen == [("add", ["alpha", "other"]), ("add", [])]


@pytest.mark.parametrize("cls", [facula.Tensor, nn.Parameter])
def test_contains(cls):
    tensor = facula.tensor([1.0, 2.0]).as_subclass(cls)
    assert 2 in tensor
    assert tensor.__contains__(2)
    assert not tensor.__contains__(3)
