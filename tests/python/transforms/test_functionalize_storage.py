"""functionalize and trace see what becomes of storages: resize_, set_ and .data in all forms."""

import facula
import pytest
from facula import func
from facula._trace import trace

B = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
resize = facula.ops.aten.resize_storage_bytes_


def _grow_use_shrink(x, src):
    x.untyped_storage().resize_(24)
    x.copy_(src)
    y = x * 2
    x.untyped_storage().resize_(0)
    return y


def _grow_by_operator(x, src):
    resize(x, 24)
    x.copy_(src)
    y = x[1].clone()
    resize(x, 0)
    return y


def _grow_and_keep(x, src):
    x.untyped_storage().resize_(24)
    x.copy_(src)
    return x + 1


def _twice(x, src):
    return _grow_use_shrink(x, src) + _grow_use_shrink(x, src + 1)


def _views_of_nothing(x, src):
    row = x[0]
    x.untyped_storage().resize_(24)
    x.copy_(src)
    y = row * 2
    x.untyped_storage().resize_(0)
    return y, x.view(-1)


def _shrink(x, src):
    y = x + src
    x.untyped_storage().resize_(0)
    return y


def _empty_own(x, src):
    y = src * 2
    z = y + 1
    y.untyped_storage().resize_(0)
    return z, y


CASES = {
    "grow_use_shrink": (_grow_use_shrink, True),
    "grow_by_operator": (_grow_by_operator, True),
    "grow_and_keep": (_grow_and_keep, True),
    "twice": (_twice, True),
    "views_of_nothing": (_views_of_nothing, True),
    "shrink": (_shrink, False),
    "empty_own": (_empty_own, False),
}


def _shown(value):
    """Values, or the size of what has lost them."""
    if isinstance(value, tuple):
        return [_shown(v) for v in value]
    bytes_there = value.untyped_storage().nbytes()
    return value.tolist() if bytes_there or not value.numel() else (tuple(value.shape), 0)


def _inputs(emptied):
    x = facula.tensor(B)
    if emptied:
        x.untyped_storage().resize_(0)
    return x, facula.tensor(B) * 10


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("name", CASES)
def test_as_eager(name, remove):
    f, emptied = CASES[name]
    a, b = _inputs(emptied), _inputs(emptied)
    assert _shown(f(*a)) == _shown(func.functionalize(f, remove=remove)(*b))
    assert _shown(a) == _shown(b)


@pytest.mark.parametrize("functionalize", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_traced(name, functionalize):
    f, emptied = CASES[name]
    graph = trace(f, _inputs(emptied), functionalize=functionalize)
    a, b = _inputs(emptied), _inputs(emptied)
    eager, out = f(*a), graph.run(list(b))
    eager = list(eager) if isinstance(eager, tuple) else [eager]
    assert _shown(tuple(eager)) == _shown(tuple(out))
    assert _shown(a) == _shown(b)


def test_grow_use_shrink_leaves_the_input_alone():
    graph = trace(_grow_use_shrink, _inputs(True), functionalize=True)
    assert "resize_storage_bytes_" not in str(graph)
    assert "copy_" not in str(graph)


def test_reading_what_is_emptied_raises():
    def f(x):
        x.untyped_storage().resize_(0)
        return x + 1

    for run in (f, func.functionalize(f)):
        with pytest.raises(RuntimeError, match="0 bytes"):
            run(facula.tensor(B))


def _set_itself(x):
    x.set_(x)
    return x * 2


def _set_other(x):
    y = facula.ones(4) * 3
    x.set_(y)
    x.add_(1)
    return y + x


def _set_storage(x):
    y = facula.ones(4) * 3
    x.set_(y.untyped_storage(), 1, (3,))
    x.add_(1)
    return y + 0


def _set_whole_storage(x):
    y = facula.ones(4) * 3
    x.set_(y.untyped_storage())
    x.mul_(2)
    return y + 0


def _set_nothing(x):
    x.set_()
    return x + 1


def _data(x):
    x.data = facula.ones(4) * 3
    x.add_(1)
    return x * 2


def _data_of_another_dtype(x):
    x.data = facula.arange(3)
    return x * 2


def _transposed(x):
    x.t_()
    return x[0] * 2


@pytest.mark.parametrize(
    "f",
    [
        _set_itself,
        _set_other,
        _set_storage,
        _set_whole_storage,
        _set_nothing,
        _data,
        _data_of_another_dtype,
        _transposed,
    ],
)
def test_sources_as_eager(f):
    a, b = facula.tensor(B), facula.tensor(B)
    out, functional = f(a), func.functionalize(f)(b)
    assert out.tolist() == functional.tolist()
    assert (a.tolist(), a.dtype, a.stride()) == (b.tolist(), b.dtype, b.stride())


def test_data_is_recorded():
    def f(x, y):
        x.data = y
        return x + 1

    graph = trace(f, [facula.zeros(2), facula.ones(3)])
    assert "set_data" in str(graph)
    assert graph.run([facula.zeros(2), facula.full((3,), 5.0)])[0].tolist() == [6.0, 6.0, 6.0]
