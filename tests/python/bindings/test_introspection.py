"""What Python's own tools see: missing names, signatures, generics, calls of modules."""

import importlib
import inspect
import pkgutil

import facula
import pytest


def _modules():
    yield facula
    for info in pkgutil.walk_packages(facula.__path__, "facula."):
        last = info.name.rpartition(".")[2]
        if not last.startswith(("_", "lib")):
            yield importlib.import_module(info.name)


def test_missing_names_are_attribute_errors_everywhere():
    for module in _modules():
        if module.__name__ != "facula.ops":  # any name is a namespace there
            assert not hasattr(module, "surely_missing"), module


@pytest.mark.parametrize(
    "module, name",
    [
        ("facula.nn.utils", "no_such_norm"),
        ("facula.nn.utils", "no_such_module"),
        ("facula.optim", "no_such_utils"),
        ("facula.nn", "NoSuchModule"),
        ("facula.nn.modules", "NoSuchModule"),
        ("facula", "no_such_module"),
    ],
)
def test_hasattr_answers(module, name):
    assert not hasattr(importlib.import_module(module), name)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{module}.{name}")


def test_signatures():
    layer = facula.nn.Linear(2, 3)
    assert str(inspect.signature(layer)) == "(*args, **kwargs)"
    assert "in_features" in str(inspect.signature(facula.nn.Linear))
    assert list(inspect.signature(facula.no_grad).parameters) == []
    assert list(inspect.signature(facula.enable_grad).parameters) == []
    assert len(inspect.signature(facula.no_grad()).parameters) == 1

    class Own(facula.nn.Module):
        def __call__(self, one):
            return one

    assert list(inspect.signature(Own()).parameters) == ["one"]


def test_datasets_take_parameters():
    from facula.utils.data import DataLoader, Dataset, Sampler

    assert str(Dataset[int]).endswith("Dataset[int]")

    class Numbers(Dataset[int]):
        def __getitem__(self, index):
            return index

    assert issubclass(Numbers, Dataset) and Numbers()[3] == 3
    assert DataLoader[int].__args__ == Sampler[int].__args__ == (int,)


@pytest.mark.parametrize(
    "dtype, name",
    [
        ("uint16", "UInt16Tensor"),
        ("uint64", "UInt64Tensor"),
        ("complex32", "ComplexHalfTensor"),
        ("float8_e5m2", "Float8_e5m2Tensor"),
    ],
)
def test_every_dtype_has_a_type_name(dtype, name):
    x = facula.empty(2, dtype=getattr(facula, dtype))
    assert facula.typename(x) == x.type() == f"torch.{name}"
    assert facula.ones(2).type(f"torch.{name}").dtype is x.dtype


class _Answers:
    def __rand__(self, other):
        return "rand"

    def __radd__(self, other):
        return "radd"


def test_in_place_operators_leave_unknown_operands_to_them():
    x = facula.ones(2, dtype=facula.int64)
    both = added = x
    both &= _Answers()
    added += _Answers()
    assert (both, added) == ("rand", "radd")
    with pytest.raises(TypeError, match="unsupported operand type"):
        x += "text"


def test_call_impl_of_a_subclass_is_called():
    class Doubled(facula.nn.Linear):
        def _call_impl(self, *args, **kwargs):
            return 2 * super()._call_impl(*args, **kwargs)

    layer = Doubled(2, 2)
    x = facula.ones(1, 2)
    assert layer(x).equal(2 * layer.forward(x))
    assert layer._wrapped_call_impl(x).equal(layer(x))
    plain = facula.nn.Linear(2, 2)
    object.__setattr__(plain, "_call_impl", lambda x: "own")
    assert plain(x) == "own"


def test_signatures_of_overloads_are_one():
    assert str(inspect.signature(facula.all)) == "(input, dim=None, keepdim=False, *, out=None)"
    assert str(inspect.signature(facula.Tensor.max)).startswith("(self, ")
    assert "all(self, dim" in facula.Tensor.all.__doc__
