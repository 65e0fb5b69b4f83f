"""Rules of the jagged layout: views, indexing, joining and splitting."""

from __future__ import annotations

import math

import facula

from .base import values_of, write
from .nested_int import NestedInt
from .nested_tensor import checked_dim
from .ops import _parts, check_nested, is_jagged, rule, wrapped
from .padding import compact


def inner_dim(name, self, dim, may_be_ragged=False):
    """The dimension of the values for one of the nested tensor.

    Raises:
        RuntimeError: it is the batch, or the ragged dimension where that may not be.
    """
    dim = checked_dim(dim, self.dim())
    if dim == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if dim == self._spec.ragged_idx and not may_be_ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return dim - 1


# --- permutations


def _permuted(self, order, refusal):
    if order[0] != 0:
        raise ValueError(f"{refusal} is not supported on the batch dimension for jagged NT")
    spec = self._spec.at(order.index(self._spec.ragged_idx))
    return wrapped(values_of(self).permute([d - 1 for d in order[1:]]), spec)


@rule("transpose swapaxes swapdims", "all dimensions but the batch")
def _transpose(func, self, dim0, dim1):
    a, b = checked_dim(dim0, self.dim()), checked_dim(dim1, self.dim())
    order = list(range(self.dim()))
    order[a], order[b] = order[b], order[a]
    return _permuted(self, order, "Transpose")


@rule("mT", "all dimensions but the batch")
def _matrix_transpose(func, self):
    return _transpose(func, self, -2, -1)


@rule("T H mH", "none")
def _no_transpose(func, self):
    raise ValueError("Permute is not supported on the batch dimension for jagged NT")


@rule("permute", "all dimensions but the batch")
def _permute(func, self, *dims):
    dims = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    order = [checked_dim(d, self.dim()) for d in dims]
    if sorted(order) != list(range(self.dim())):
        raise RuntimeError(
            f"permute(): dims must be a permutation of {self.dim()} dimensions; got {list(dims)}"
        )
    return _permuted(self, order, "Permute")


@rule("movedim moveaxis", "all dimensions but the batch")
def _movedim(func, self, source, destination):
    source = [source] if isinstance(source, int) else list(source)
    destination = [destination] if isinstance(destination, int) else list(destination)
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim(): source and destination must be of one length; got {source} and "
            f"{destination}"
        )
    source = [checked_dim(d, self.dim()) for d in source]
    destination = [checked_dim(d, self.dim()) for d in destination]
    order = [d for d in range(self.dim()) if d not in source]
    for to, dim in sorted(zip(destination, source, strict=True)):
        order.insert(to, dim)
    return _permuted(self, order, "Permute")


# --- sizes


def _view_sizes(self, size):
    """The sizes of the values for those of a view, and the ragged dimension; None if impossible."""
    spec, inner = self._spec, self._values.shape
    if len(size) < 2 or size[0] not in (-1, spec.batch):
        return None
    ragged = [d for d, n in enumerate(size) if isinstance(n, NestedInt)]
    before = math.prod(inner[: spec.inner])
    if not ragged:
        ragged = [
            d
            for d in range(1, len(size))
            if size[d] == -1 and math.prod(abs(n) for n in size[1:d]) == before
        ][:1]
    if len(ragged) != 1 or size[ragged[0]] not in (-1, spec.raggedness.size):
        return None
    at = ragged[0]
    head, tail = _with_inferred(size[1:at], before), size[at + 1 :]
    tail = _with_inferred(tail, math.prod(inner[spec.inner + 1 :]))
    if head is None or tail is None:
        return None
    return [*head, inner[spec.inner], *tail], at


def _with_inferred(size, total):
    """Sizes with -1 replaced, if they hold `total` elements; else None."""
    known = math.prod(n for n in size if n != -1)
    unknown = sum(n == -1 for n in size)
    if unknown > 1 or any(isinstance(n, NestedInt) or n < -1 for n in size):
        return None
    if unknown == 0:
        return list(size) if known == total else None
    if known == 0 or total % known:
        return None
    return [total // known if n == -1 else n for n in size]


@rule("view reshape _unsafe_view", "the batch stays, and the ragged dimension as a whole")
def _view(func, self, *size):
    if len(size) == 1 and isinstance(size[0], facula.dtype):
        return wrapped(values_of(self).view(size[0]), self._spec)
    size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    found = _view_sizes(self, list(size))
    if found is None:
        raise RuntimeError(f"view(): cannot view shape {tuple(self.shape)} as {list(size)}")
    values = values_of(self)
    values = values.reshape(found[0]) if func.__name__ == "reshape" else values.view(found[0])
    return wrapped(values, self._spec.at(found[1]))


@rule("view_as reshape_as", "as view")
def _view_as(func, self, other):
    return _view(func, self, *other.shape)


@rule("flatten", "dimensions without the batch and the ragged one")
def _flatten(func, self, start_dim=0, end_dim=-1):
    start, end = checked_dim(start_dim, self.dim()), checked_dim(end_dim, self.dim())
    if start == end:
        return self
    if start == 0:
        raise RuntimeError("flatten(): not supported for NestedTensor on dim=0")
    ragged = self._spec.ragged_idx
    if start <= ragged <= end:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    at = ragged if ragged < start else ragged - (end - start)
    return wrapped(values_of(self).flatten(start - 1, end - 1), self._spec.at(at))


@rule("unflatten", "dimensions but the batch and the ragged one")
def _unflatten(func, self, dim, sizes):
    inner = inner_dim("unflatten", self, dim)
    values = values_of(self).unflatten(inner, sizes)
    return wrapped(values, self._spec.at(_moved(self, inner, len(sizes) - 1)))


def _moved(self, inner, more):
    """The ragged dimension after `more` dimensions came in at one of the values."""
    ragged = self._spec.ragged_idx
    return ragged + more if inner < ragged - 1 else ragged


@rule("unsqueeze", "any place but before the batch")
def _unsqueeze(func, self, dim):
    dim = checked_dim(dim, self.dim() + 1)
    if dim == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    ragged = self._spec.ragged_idx
    at = ragged + 1 if dim <= ragged else ragged
    return wrapped(values_of(self).unsqueeze(dim - 1), self._spec.at(at))


@rule("squeeze", "a dimension, not the batch or the ragged one")
def _squeeze(func, self, dim=None):
    if dim is None:
        raise NotImplementedError("squeeze(): a nested tensor needs the dimension; got none")
    dims = [dim] if isinstance(dim, int) else dim
    inner = [inner_dim("squeeze", self, d) for d in dims]
    values = values_of(self)
    gone = [d for d in inner if values.shape[d] == 1]
    at = self._spec.ragged_idx - sum(d < self._spec.inner for d in gone)
    return wrapped(values.squeeze(inner), self._spec.at(at))


# --- parts


@rule("select", "dim 0, or a dimension that is not ragged")
def _select(func, self, dim, index):
    dim = checked_dim(dim, self.dim())
    if dim == 0:
        return _parts(self)[index]
    inner = inner_dim("select", self, dim)
    return wrapped(values_of(self).select(inner, index), self._spec.at(_moved(self, inner, -1)))


@rule("narrow", "a dimension that is neither the batch nor ragged")
def _narrow(func, self, dim, start, length):
    inner = inner_dim("narrow", self, dim)
    return wrapped(values_of(self).narrow(inner, start, length), self._spec)


@rule("slice", "a dimension that is neither the batch nor ragged")
def _slice(func, self, dim=0, start=None, end=None, step=1):
    inner = inner_dim("slice", self, dim)
    key = [slice(None)] * inner + [slice(start, end, step)]
    return wrapped(values_of(self)[tuple(key)], self._spec)


@rule("split split_with_sizes tensor_split", "a dimension that is neither the batch nor ragged")
def _split(func, self, split_size, dim=0):
    inner = inner_dim(func.__name__, self, dim)
    pieces = func(values_of(self), split_size, inner)
    return tuple(wrapped(piece, self._spec) for piece in pieces)


@rule("chunk", "dim 0, or a dimension that is not ragged")
def _chunk(func, self, chunks, dim=0):
    if checked_dim(dim, self.dim()) == 0:
        return _chunks_of_batch(self, chunks)
    inner = inner_dim("chunk", self, dim)
    return tuple(wrapped(piece, self._spec) for piece in values_of(self).chunk(chunks, inner))


def _chunks_of_batch(self, chunks):
    if chunks < 1:
        raise RuntimeError(f"chunk(): chunks must be greater than 0; got {chunks}")
    values, spec = compact(values_of(self), self._spec)
    offsets, step = spec.offsets, -(-spec.batch // chunks)
    found = []
    for first in range(0, spec.batch, step):
        ends = offsets[first : first + step + 1]
        begin, end = int(ends[0]), int(ends[-1])
        from .nested_int import JaggedSpec

        piece = values.narrow(spec.inner, begin, end - begin)
        found.append(wrapped(piece, JaggedSpec(ends - begin, None, spec.ragged_idx)))
    return tuple(found)


@rule("__getitem__", "a sequence by its number, or all with indices of dimensions not ragged")
def _getitem(func, self, key):
    key = list(key) if isinstance(key, tuple) else [key]
    if not all(_is_simple(one) for one in key):
        raise NotImplementedError("__getitem__(): nested tensors take no tensors as indices")
    given = sum(one is not None and one is not Ellipsis for one in key)
    if given > self.dim():
        raise IndexError(f"too many indices for tensor of dimension {self.dim()}")
    if Ellipsis in key:
        at = key.index(Ellipsis)
        key[at : at + 1] = [_ALL] * (self.dim() - given)
    elif key and isinstance(key[0], slice):
        raise RuntimeError("slice(): not supported for NestedTensor on dim=0")
    result, dim = self, 0
    for place, one in enumerate(key):
        if place == 0 and isinstance(one, int):
            sequence = _parts(self)[one]
            return sequence[tuple(key[1:])] if len(key) > 1 else sequence
        if isinstance(one, int):
            result = _select(func, result, dim, one)
            continue
        if one is None:
            result = _unsqueeze(func, result, dim)
        elif one is not _ALL and one != slice(None):
            result = _slice(func, result, dim, one.start, one.stop, one.step or 1)
        dim += 1
    return result


_ALL = object()


def _is_simple(one):
    return one is None or one is Ellipsis or isinstance(one, (int, slice))


@rule("__setitem__", "a sequence, or `...` and indices of dimensions that are not ragged")
def _setitem(func, self, key, value):
    value = values_of(value) if is_jagged(value) else value

    def change(values):
        plain = type(self)(values, self._spec)
        place = _getitem(func, plain, key)
        place = place._values if is_jagged(place) else place
        if isinstance(value, facula.Tensor):
            place.copy_(value)
        else:
            place.fill_(value)

    if facula.is_grad_enabled() and isinstance(value, facula.Tensor) and value.requires_grad:
        raise NotImplementedError(
            "__setitem__(): a value that requires gradients cannot be put into a nested tensor"
        )
    write(self, change)


@rule("masked_select", "a mask with the same lengths; two dimensions")
def _masked_select(func, self, mask):
    check_nested("masked_select", self)
    check_nested("masked_select", mask)
    if self._values.dim() != 1:
        raise RuntimeError("masked_select only support 2-D selections currently")
    if self.shape != mask.shape:
        raise RuntimeError(
            f"masked_select(): mask must have the shape of the input, {tuple(self.shape)}; got "
            f"{tuple(mask.shape)}"
        )
    from .nested_int import JaggedSpec

    values, spec = compact(values_of(self), self._spec)
    kept = compact(mask._values, mask._spec)[0]
    counts = facula.cat([kept.new_zeros(1, dtype=facula.int64), kept.cumsum(0)])
    return wrapped(values.masked_select(kept), JaggedSpec(counts.index_select(0, spec.offsets)))


# --- joining


@rule("cat concat concatenate", "a dimension that is neither the batch nor ragged")
def _cat(func, tensors, dim=0, *, out=None):
    return _joined("cat", func, tensors, dim, 0)


@rule("stack", "a dimension that is neither the batch nor ragged")
def _stack(func, tensors, dim=0, *, out=None):
    return _joined("stack", func, tensors, dim, 1)


def _joined(name, func, tensors, dim, more):
    for tensor in tensors:
        check_nested(name, tensor)
    first = tensors[0]
    dim = checked_dim(dim, first.dim() + more)
    ragged = first._spec.ragged_idx
    if dim == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if not more and dim == ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    for tensor in tensors[1:]:
        if not first._spec.same_lengths(tensor._spec) or tensor.dim() != first.dim():
            raise RuntimeError(
                f"{name}(): tensors must have the same ragged dimension; got shapes "
                f"{tuple(first.shape)} and {tuple(tensor.shape)}"
            )
    at = ragged + 1 if more and dim <= ragged else ragged
    return wrapped(func([values_of(t) for t in tensors], dim - 1), first._spec.at(at))


@rule("index_put index_put_", "one index for each of the first dimensions up to the ragged one")
def _index_put(func, self, indices, values, accumulate=False):
    spec = self._spec
    if len(indices) <= spec.ragged_idx or any(i is None for i in indices):
        raise RuntimeError(
            f"{func.__name__}(): indices must be given for dimensions 0 to {spec.ragged_idx}; got "
            f"{len(indices)}"
        )
    starts, lengths = (
        facula.tensor(n, dtype=facula.int64, device=self.device)
        for n in (spec.known().starts, spec.known().lengths)
    )
    batch, within = indices[0], indices[spec.ragged_idx]
    if bool(((within < 0) | (within >= lengths[batch])).any()):
        raise IndexError(
            f"{func.__name__}(): an index of the ragged dimension is out of its sequence's range"
        )
    inner = list(indices[1:])
    inner[spec.inner] = starts[batch] + within
    if func.__name__ == "index_put":
        return wrapped(values_of(self).index_put(inner, values, accumulate), spec)
    return write(self, lambda place: place.index_put_(inner, values, accumulate))
