"""functionalize of resize_: views within a storage, storages that grow, and parts that go."""

import facula
import pytest
from facula import func


def _shrink(x):
    y = x * 1
    y.resize_(4)
    y.add_(1)
    return y * 2


def _other_shape(x):
    y = x * 1
    y.resize_(2, 3).add_(1)
    return y * 2


def _shrink_an_input(x):
    x.resize_(2, 2)
    x.mul_(3)
    return x + 0


def _grow(x):
    y = x * 1
    y.resize_(8)
    y[6:].fill_(9)
    return y * 2


def _grow_an_input(x):
    x.resize_(2, 4)
    x[1, 2:].fill_(9)
    return x * 2


def _there_and_back(x):
    y = x * 1
    y.resize_(2)
    y.add_(10)
    y.resize_(6)
    return y * 2


def _of_a_view(x):
    y = x * 1
    y[2:4].resize_(3).add_(100)
    return y + 0


def _as_another(x):
    y = x * 1
    y.resize_as_(facula.zeros(3))
    return y + 1


def _channels_last(x):
    y = x.view(1, 2, 3, 1) * 1
    y.resize_(1, 3, 2, 1, memory_format=facula.channels_last)
    return y.add_(1).mul(2)


def _to_nothing_and_back(x):
    y = x * 1
    y.resize_(0)
    y.resize_(3)
    return y + 1


def _part_of_a_storage(x):
    y = x * 1
    y.untyped_storage().resize_(12)
    return y[:3] + 1


def _part_of_an_input(x):
    x[:3].mul_(2)
    x.untyped_storage().resize_(12)
    x.resize_(3)
    x.add_(1)
    return x + 0


def _part_then_shape(x):
    y = x * 1
    y.untyped_storage().resize_(16)
    y.resize_(2, 2).add_(1)
    return y + 0


def _grown_storage(x):
    y = x * 1
    y.untyped_storage().resize_(40)
    y.resize_(8)
    y[6:].zero_()
    return y + 1


CASES = [
    _shrink,
    _other_shape,
    _shrink_an_input,
    _grow,
    _grow_an_input,
    _there_and_back,
    _of_a_view,
    _as_another,
    _channels_last,
    _to_nothing_and_back,
    _part_of_a_storage,
    _part_of_an_input,
    _part_then_shape,
    _grown_storage,
]


def _seen(function, x):
    y = function(x)
    return y.tolist(), x.tolist(), x.shape, x.untyped_storage().nbytes(), y.stride()


@pytest.mark.parametrize("case", CASES, ids=lambda f: f.__name__.strip("_"))
def test_resize_does_what_it_does_without(case):
    expected = _seen(case, facula.arange(6.0))
    assert _seen(func.functionalize(case), facula.arange(6.0)) == expected


@pytest.mark.parametrize("case", CASES, ids=lambda f: f.__name__.strip("_"))
def test_the_same_where_views_become_copies(case):
    expected = _seen(case, facula.arange(6.0))[:-1]  # copies have strides of their own
    copying = func.functionalize(case, remove="mutations_and_views")
    if case is _of_a_view:
        with pytest.raises(NotImplementedError, match="of a view"):
            copying(facula.arange(6.0))
        return
    assert _seen(copying, facula.arange(6.0))[:-1] == expected


def test_what_is_not_done_says_so():
    def shared(x):
        y = x * 1
        z = y[:2]
        y.resize_(9)
        return z + 0

    def of_bits(x):
        return x.view(facula.int32).resize_(2)

    for function, text in ((shared, "several tensors share"), (of_bits, "another dtype")):
        with pytest.raises(NotImplementedError, match=text):
            func.functionalize(function)(facula.arange(6.0))

    def beyond_a_slice(x):
        return x.resize_(9)

    with pytest.raises(NotImplementedError, match="not all of its storage"):
        func.functionalize(beyond_a_slice)(facula.arange(6.0)[2:])
