"""Rules of the jagged layout: reductions and softmax."""

from __future__ import annotations

import facula

from .base import values_of
from .nested_tensor import checked_dim
from .ops import rule, wrapped
from .padding import from_padded, rows_of, to_padded


def _least(dtype):
    if dtype.is_floating_point:
        return -facula.inf
    return False if dtype == facula.bool else facula.iinfo(dtype).min


def _greatest(dtype):
    if dtype.is_floating_point:
        return facula.inf
    return True if dtype == facula.bool else facula.iinfo(dtype).max


# What may stand after the shorter sequences without changing the result.
_PADDING = {
    "sum": lambda dtype: 0,
    "prod": lambda dtype: 1,
    "any": lambda dtype: 0,
    "all": lambda dtype: 1,
    "amax": _least,
    "max": _least,
    "argmax": _least,
    "amin": _greatest,
    "min": _greatest,
    "argmin": _greatest,
}


def _dims(name, self, dim):
    """Dimensions from the front; None where all are reduced."""
    if dim is None:
        return None
    given = [dim] if isinstance(dim, int) else list(dim)
    if not given:
        return None
    found = sorted({checked_dim(d, self.dim()) for d in given})
    if len(found) != len(given):
        raise RuntimeError(f"{name}(): a dimension appears twice in dim; got {given}")
    if len(found) == self.dim():
        return None
    ragged = self._spec.ragged_idx
    if 0 in found and ragged not in found:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not "
            "supported for nested tensors"
        )
    if ragged in found and 0 not in found and len(found) > 1:
        raise RuntimeError(
            f"{name}(): reducing along a ragged and non-batch dimension is not supported for "
            "nested tensors"
        )
    return found


def _over_all(func, self, keepdim, **options):
    rows = rows_of(values_of(self), self._spec).movedim(0, self._spec.inner)
    result = func(rows, **options)
    return result.reshape((1,) * self.dim()) if keepdim else result


def _reduce(name, func, self, dim, keepdim, **options):
    """A reduction over dimensions; `func` is called with `dim` and `keepdim`."""
    found = _dims(name, self, dim)
    if found is None:
        return _over_all(func, self, keepdim, **options)
    spec, values = self._spec, values_of(self)
    several = not isinstance(dim, int)
    if spec.ragged_idx not in found:
        inner = [d - 1 for d in found]
        result = func(values, inner if several else inner[0], keepdim, **options)
        at = spec.ragged_idx - (0 if keepdim else sum(d < spec.inner for d in inner))
        return _each(result, lambda v: wrapped(v, spec.at(at)))
    if 0 in found:
        rows = rows_of(values, spec).movedim(0, spec.inner)
        result = func(rows, [d - 1 for d in found if d], keepdim, **options)
        return _each(result, lambda v: v.unsqueeze(0) if keepdim else v)
    return _over_ragged(name, func, values, spec, several, keepdim, options)


def _each(result, change):
    if isinstance(result, facula.Tensor):
        return change(result)
    return type(result)([change(part) for part in result])


def _over_ragged(name, func, values, spec, several, keepdim, options):
    if spec.lengths is not None:
        raise RuntimeError(
            f"{name}(): reducing across the ragged dimension is not supported for non-contiguous "
            "nested tensors with holes"
        )
    if name in ("sum", "mean"):
        result = _sum_of_sequences(name, values, spec, **options)
        return result.unsqueeze(spec.ragged_idx) if keepdim else result
    padded = to_padded(values, spec, _PADDING[name](values.dtype))
    dim = [spec.ragged_idx] if several else spec.ragged_idx
    return func(padded, dim, keepdim, **options)


def _sum_of_sequences(name, values, spec, dtype=None):
    if dtype is None and name == "sum" and not _is_fractional(values.dtype):
        dtype = facula.int64
    if dtype is None and name == "mean" and not _is_fractional(values.dtype):
        dtype = facula.get_default_dtype()
    rows = rows_of(values, spec)
    rows = rows if dtype is None else rows.to(dtype)
    which = spec.rows()[0]
    total = rows.new_zeros((spec.batch, *rows.shape[1:])).index_add(0, which, rows)
    if name == "mean":
        lengths = facula.tensor(spec.known().lengths, dtype=total.dtype, device=total.device)
        total = total / lengths.view(-1, *(1,) * (total.dim() - 1))
    # Dimensions before the ragged one come back to their places.
    return total


def _is_fractional(dtype):
    return dtype.is_floating_point or dtype.is_complex


_HOLDS = "all elements; dimensions that are not ragged; the ragged one; batch and ragged together"


@rule("sum mean", _HOLDS)
def _sum(func, self, dim=None, keepdim=False, *, dtype=None):
    options = {} if dtype is None else {"dtype": dtype}
    return _reduce(func.__name__, _named(func), self, dim, keepdim, **options)


def _named(func):
    """`func` for calls by position, whatever it is a method or a function of."""

    def call(values, dim=None, keepdim=False, **options):
        if dim is None:
            return func(values, **options)
        return func(values, dim, keepdim, **options)

    return call


@rule("prod", "all elements; one dimension that is not the batch")
def _prod(func, self, dim=None, keepdim=False, *, dtype=None):
    options = {} if dtype is None else {"dtype": dtype}
    return _reduce("prod", _named(func), self, dim, keepdim, **options)


@rule("amax amin", _HOLDS)
def _extremum(func, self, dim=(), keepdim=False):
    return _reduce(func.__name__, _named(func), self, dim, keepdim)


@rule("argmax argmin", "all elements; one dimension that is not the batch")
def _arg_extremum(func, self, dim=None, keepdim=False):
    if dim is None:
        return func(values_of(self))
    return _reduce(func.__name__, _named(func), self, dim, keepdim)


@rule("any all", _HOLDS)
def _any(func, self, dim=None, keepdim=False):
    return _reduce(func.__name__, _named(func), self, dim, keepdim)


@rule("max min", "two tensors; all elements; one dimension that is not the batch")
def _max(func, self, dim=None, keepdim=False, *, other=None):
    other = dim if isinstance(dim, facula.Tensor) else other
    if other is not None or not hasattr(self, "_spec"):
        name = f"{func.__name__}imum"
        from .ops import RULES

        return RULES._elementwise(name, getattr(facula, name), (self, other), {})
    return _reduce(func.__name__, _named(func), self, dim, keepdim)


@rule("softmax log_softmax softmin special_softmax _softmax _log_softmax", "all but the batch")
def _softmax(func, self, dim=None, dtype=None, *more, _stacklevel=3, half_to_float=None):
    # F.softmax has `_stacklevel` before dtype.
    if isinstance(dtype, int):
        dtype = more[0] if more else None
    name, spec = func.__name__.lstrip("_"), self._spec
    dim = 0 if dim is None else checked_dim(dim, self.dim())
    if dim == 0:
        raise RuntimeError(
            f"{name}(): not supported when reducing across the batch dimension for NestedTensor"
        )
    values = values_of(self)
    options = {} if dtype is None else {"dtype": dtype}
    compute = getattr(facula.nn.functional, name.split(".")[-1])
    if dim != spec.ragged_idx:
        return wrapped(compute(values, dim - 1, **options), spec)
    if spec.lengths is not None:
        raise RuntimeError(
            f"{name}(): not supported where lengths is not None if reducing across the ragged "
            "dimension for NestedTensor"
        )
    if name == "log_softmax":
        raise RuntimeError(
            "log_softmax(): not supported when reducing along the ragged dimension for NestedTensor"
        )
    edge = -facula.inf if name == "softmax" else facula.inf
    padded = to_padded(values, spec, edge)
    return wrapped(from_padded(compute(padded, spec.ragged_idx, **options), spec), spec)
