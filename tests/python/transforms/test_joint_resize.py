"""Joint graphs of programs that fill and free storages, as fully sharded training does."""

import facula
import pytest
from facula import _C
from facula._trace import trace_joint

BYTES = 24


def _fake(*shape, empty=False, grad=True):
    t = facula.ones(shape)
    if empty:
        t.untyped_storage().resize_(0)
    return _C._make_fake(t).requires_grad_(grad)


def _fill(w, source):
    w.untyped_storage().resize_(BYTES)
    with facula.no_grad():
        w.copy_(source)


def _free(*tensors):
    for t in tensors:
        t.untyped_storage().resize_(0)


def _shrink(x, w):
    y = (x * w).sum()
    _free(w)
    return y


def _grow(x, w, source):
    _fill(w, source)
    return (x * w).sum()


def _grow_and_shrink(x, w, source):
    _fill(w, source)
    y = (x * w).sum()
    _free(w)
    return y


def _views(x, w, source):
    _fill(w, source)
    y = (x[:, :2] * w.t() * w.view(-1)[4:]).sum()
    _free(w)
    return y


def _lists(x, w, v, source):
    w.untyped_storage().resize_(BYTES)
    v.untyped_storage().resize_(BYTES)
    with facula.no_grad():
        facula._foreach_copy_([w, v], [source, source])
    y = (x * w * v).sum()
    _free(w, v)
    return y


def _graph(function, *inputs):
    with _C._FakeMode(False):
        graph = trace_joint(function, inputs)
    graph.lint()
    graph.eliminate_dead_code()
    return [line.strip() for line in str(graph).splitlines()]


def _lines(graph, *names):
    return [line for line in graph if any(f"::{name}" in line for name in names)]


def _filled(**options):
    return _fake(2, 3, empty=True, **options)


def _source():
    return _fake(2, 3, grad=False)


def test_a_storage_that_shrinks_is_resized_at_the_end():
    graph = _graph(_shrink, _fake(2, 3), _fake(2, 3))
    assert graph[-2].endswith("aten::resize_storage_bytes_(%1, 0)")
    assert not _lines(graph, "copy_")


def test_a_storage_that_grows_is_resized_and_filled():
    graph = _graph(_grow, _fake(2, 3), _filled(), _source())
    resized, filled = graph[-3:-1]
    assert "aten::resize_storage_bytes_(%1, 24)" in resized
    assert "aten::copy_(" in filled


@pytest.mark.parametrize("grad", [True, False])
def test_growing_and_shrinking_leaves_nothing_but_the_original_in_the_backward(grad):
    graph = _graph(_grow_and_shrink, _fake(2, 3), _filled(grad=grad), _source())
    assert not _lines(graph, "resize_storage_bytes_", "copy_(")
    # The forward product reads what was copied, the backward one the parameter itself.
    forward, *backward = [line.split("(")[1] for line in _lines(graph, "mul.Tensor")]
    source = _lines(graph, "detach(%1)")[-1].split(" = ")[0] if grad else "%1"
    assert source not in forward
    assert any(source in arguments for arguments in backward)


def test_views_are_made_again_in_the_backward_by_their_operators():
    graph = _graph(_views, _fake(3, 3), _filled(), _source())
    assert not _lines(graph, "resize_storage_bytes_", "copy_(", "as_strided")
    made = [line.split(" = ")[0] for line in graph if "aten::detach(%1)" in line]
    again = [line for line in graph if any(f"({id}" in line for id in made)]
    assert [n for n in ("t(", "view(") if any(f"aten::{n}" in line for line in again)] == [
        "t(",
        "view(",
    ]


def test_lists_are_filled_together():
    graph = _graph(_lists, _fake(2, 3), _filled(), _filled(grad=False), _source())
    assert not _lines(graph, "resize_storage_bytes_", "copy_(")
    assert any("(%2" in line or ", %2" in line for line in _lines(graph, "mul.Tensor"))


def test_other_sizes_than_zero_give_what_eager_gives():
    def half(x):
        x.untyped_storage().resize_(12)
        return x.view(-1)[:3] * 2

    x = facula.arange(6.0).view(2, 3)
    expected = half(x.clone())
    assert facula.equal(facula.func.functionalize(half)(x.clone()), expected)


def test_reading_what_was_freed_raises_in_the_forward():
    def reads(w):
        _free(w)
        return w + 1

    with pytest.raises(RuntimeError, match="resized to 0 bytes"):
        _graph(reads, _fake(2, 3))
