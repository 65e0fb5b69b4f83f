"""Rules of the jagged layout: products of matrices."""

from __future__ import annotations

import facula

from .base import values_of
from .ops import check_nested, check_plain, is_jagged, rule, wrapped
from .padding import from_padded, to_padded


@rule("linear", "the last dimension is not ragged; weight and bias are plain")
def _linear(func, input, weight, bias=None):
    check_plain("linear", weight=weight, bias=bias)
    check_nested("linear", input)
    if input._spec.lengths is not None:
        raise ValueError("linear(): input must be a jagged tensor without holes")
    _check_last("linear", input)
    return wrapped(func(values_of(input), weight, bias), input._spec)


def _check_last(name, input):
    if input._spec.ragged_idx == input.dim() - 1:
        raise RuntimeError(
            f"{name}(): the last dimension must not be ragged; got shape {tuple(input.shape)}"
        )


@rule("bmm", "three dimensions each; as matmul")
def _bmm(func, self, mat2, *, out=None):
    for name, one in (("self", self), ("mat2", mat2)):
        if one.dim() != 3:
            raise ValueError(f"bmm(): {name} must be 3D")
    return _matmul(func, self, mat2)


@rule("matmul __matmul__ __rmatmul__", "at most one of the result's dimensions is ragged")
def _matmul(func, a, b, *, out=None):
    if func.__name__ == "__rmatmul__":
        a, b = b, a
    both = [_shape(a), _shape(b)]
    result = _product(a, b)
    if result is None:
        raise RuntimeError(
            f"matmul(): not supported between inputs of shapes {both[0]} and {both[1]}"
        )
    return result


def _shape(tensor):
    return tuple(tensor.shape)


def _product(a, b):
    if is_jagged(a) and not is_jagged(b) and b.dim() == 2:
        if a._spec.ragged_idx == a.dim() - 1:
            return None
        return wrapped(facula.matmul(values_of(a), b), a._spec)
    if a.dim() != b.dim() or a.dim() < 3:
        return None
    if a.shape[0] != b.shape[0]:
        raise RuntimeError(
            f"The size of tensor a ({a.shape[0]}) must match the size of tensor b "
            f"({b.shape[0]}) at non-singleton dimension 0"
        )
    if is_jagged(a) and is_jagged(b) and _in_batch(a) and _in_batch(b):
        if not a._spec.same_lengths(b._spec):
            return None
        return wrapped(facula.matmul(values_of(a), values_of(b)), a._spec)
    if any(is_jagged(t) and (_in_batch(t) or t._spec.lengths is not None) for t in (a, b)):
        return None
    return _padded_product(a, b)


def _in_batch(tensor):
    """Whether the ragged dimension is one of those over which matrices are counted."""
    return tensor._spec.ragged_idx < tensor.dim() - 2


def _padded_product(a, b):
    """The product by padded matrices; zeros stand where sequences end."""
    last = a.dim() - 1
    rows = is_jagged(a) and a._spec.ragged_idx == last - 1
    columns = is_jagged(b) and b._spec.ragged_idx == last
    contracted = is_jagged(a) and a._spec.ragged_idx == last
    contracted_too = is_jagged(b) and b._spec.ragged_idx == last - 1
    if (rows and columns) or contracted != contracted_too:
        return None
    if contracted and a._spec.raggedness is not b._spec.raggedness:
        return None
    left, right = (to_padded(values_of(t), t._spec, 0) if is_jagged(t) else t for t in (a, b))
    result = facula.matmul(left, right)
    if rows or columns:
        spec = (a if rows else b)._spec
        return wrapped(from_padded(result, spec), spec)
    return result
