"""Typed constructors of old."""

import facula
import pytest


def test_sizes_and_data():
    """Sizes give memory of the dtype, data a copy."""
    assert facula.FloatTensor(2, 3).shape == (2, 3)
    assert facula.LongTensor(facula.Size([2])).dtype == facula.int64
    assert facula.IntTensor([1, 2]).tolist() == [1, 2]
    assert facula.DoubleTensor().shape == (0,)
    assert facula.BoolTensor([1, 0]).tolist() == [True, False]


def test_same_memory():
    """A tensor of the type is taken as it is."""
    x = facula.zeros(2)
    facula.FloatTensor(x)[0] = 1
    assert x.tolist() == [1, 0]


def test_instances():
    """isinstance asks for dtype and device."""
    assert isinstance(facula.tensor([1]), facula.LongTensor)
    assert not isinstance(facula.tensor([1.0]), facula.LongTensor)
    assert not isinstance(facula.zeros(1, device="meta"), facula.FloatTensor)


@pytest.mark.parametrize("args", [(2.5,), (facula.ones(1),), ([1], [2]), ("a",), (None,)])
def test_errors(args):
    """What is neither sizes nor data of the type."""
    with pytest.raises(TypeError):
        facula.LongTensor(*args)


def test_operators_of_python_2():
    """Methods that Python 2 called for / and for truth are operators by their old names."""
    x = facula.tensor([1.0, 2.0])
    assert x.__div__(2).tolist() == [0.5, 1.0]
    assert x.__rdiv__(2).tolist() == [2.0, 1.0]
    assert x.__idiv__(2) is x
    assert x.tolist() == [0.5, 1.0]
    assert facula.tensor(3).__long__() == 3
    assert facula.tensor(0).__nonzero__() is False


@pytest.mark.parametrize("name", ["__div__", "__rdiv__", "__idiv__"])
def test_operators_of_python_2_leave_what_they_do_not_know(name):
    assert getattr(facula.ones(2), name)("a") is NotImplemented


@pytest.mark.parametrize("dtype", [facula.float32, facula.complex64])
def test_inversion_of_no_integers(dtype):
    with pytest.raises(TypeError, match="integers or bools"):
        ~facula.ones(2, dtype=dtype)
