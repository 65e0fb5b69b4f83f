"""Compiled programs that free and fill storages, as fully sharded training does."""

import facula
import pytest
from facula.functorch.compile import (
    aot_function,
    default_partition,
    make_boxed_func,
    min_cut_rematerialization_partition,
)

BYTES = 24
PARTITIONS = [default_partition, min_cut_rematerialization_partition]


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


def _parameter(filled):
    w = facula.arange(6.0).reshape(2, 3)
    if not filled:
        _free(w)
    return w.requires_grad_()


def _compiled(function, partition):
    codes = []

    def keep(graph, inputs):
        codes.append(graph.code)
        return make_boxed_func(graph.forward)

    return aot_function(function, keep, partition_fn=partition), codes


def _lines(code, *names):
    return [line.strip() for line in code.splitlines() if any(f"aten.{n}" in line for n in names)]


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_parameter_that_is_freed_is_resized_at_the_end(partition):
    x, w = facula.ones(2, 3, requires_grad=True), _parameter(True)
    f, codes = _compiled(_shrink, partition)
    out = f(x, w)
    assert out.item() == 15.0 and w.untyped_storage().nbytes() == 0
    forward = codes[0].strip().splitlines()
    assert "aten.resize_storage_bytes_.default(primals_2, 0)" in forward[-2]
    _fill(w, facula.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_parameter_that_is_filled_is_resized_and_copied_to(partition):
    source = facula.arange(6.0).reshape(2, 3)
    x, w = facula.ones(2, 3, requires_grad=True), _parameter(False)
    f, codes = _compiled(_grow, partition)
    assert f(x, w, source).item() == 15.0
    assert w.untyped_storage().nbytes() == BYTES and facula.equal(w, source)
    resized, copied = _lines(codes[0], "resize_storage_bytes_", "copy_.")
    assert "primals_2, 24" in resized and "copy_.default(resize_storage_bytes_" in copied


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("function", [_grow_and_shrink, _views])
def test_what_is_filled_and_freed_leaves_no_resize_and_saves_the_parameter(function, partition):
    source = facula.arange(6.0).reshape(2, 3)
    shape = (2, 3) if function is _grow_and_shrink else (3, 3)
    x, w = facula.ones(shape, requires_grad=True), _parameter(False)
    f, codes = _compiled(function, partition)
    out = f(x, w, source)
    assert w.untyped_storage().nbytes() == 0
    assert not _lines(codes[0], "resize_storage_bytes_", "copy_.")
    # The parameter is filled again for the backward pass; the version counter is not to see it.
    with facula.autograd._unsafe_preserve_version_counter(w):
        _fill(w, source)
    out.backward()
    backward = codes[1]
    assert "primals_2" in backward.split(":")[0]
    other_x, other_w = facula.ones(shape, requires_grad=True), source.clone().requires_grad_()
    if function is _views:
        eager = (other_x[:, :2] * other_w.t() * other_w.view(-1)[4:]).sum()
    else:
        eager = (other_x * other_w).sum()
    eager.backward()
    assert facula.equal(x.grad, other_x.grad) and facula.equal(w.grad, other_w.grad)
