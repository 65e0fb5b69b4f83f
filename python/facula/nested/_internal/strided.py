"""Nested tensors of layout strided: tensors one after the other in memory."""

from __future__ import annotations

import math

import facula

from .base import Nested, history_of, nested_of, values_of, write
from .nested_tensor import checked_dim
from .rules import Rules, mapped, nested_arguments


class StridedSpec:
    """The sizes of tensors that lie one after the other, and the order of their dimensions.

    Args:
        sizes (list of tuple): of each tensor as it lies in memory.
        order (tuple): the permutation of its dimensions that the nested tensor shows.
    """

    __slots__ = ("order", "sizes")

    layout = facula.strided

    def __init__(self, sizes, order=None):
        self.sizes = [tuple(size) for size in sizes]
        self.order = order or tuple(range(len(self.sizes[0]) if self.sizes else 0))

    @property
    def batch(self):
        """The number of tensors."""
        return len(self.sizes)

    @property
    def is_contiguous(self):
        """Whether the dimensions are in memory's order."""
        return list(self.order) == sorted(self.order)

    def shown(self):
        """The sizes of each tensor in the order of dimensions that is shown."""
        return [tuple(size[d] for d in self.order) for size in self.sizes]

    def __eq__(self, other):
        return self.sizes == other.sizes and self.order == other.order

    __hash__ = None


class StridedNestedTensor(Nested):
    """Tensors of one number of dimensions, one after the other in memory.

    Args:
        values (Tensor): all elements, of one dimension.
        spec (StridedSpec): the sizes.
        requires_grad (bool): whether the tensor is a leaf that collects gradients.

    Example:
        >>> facula.nested.nested_tensor([facula.ones(1), facula.zeros(2)]).size(0)
        2
    """

    @classmethod
    def _rules(cls):
        return RULES

    @property
    def shape(self):
        """None of its own: the tensors' sizes differ.

        Raises:
            RuntimeError: always.
        """
        raise _no_geometry("sizes")

    def size(self, dim=None):
        """One size that all tensors have in common.

        Args:
            dim (int): the dimension.

        Returns:
            int

        Raises:
            RuntimeError: without a dimension, or where the sizes differ.

        Example:
            >>> facula.nested.nested_tensor([facula.ones(1, 3), facula.zeros(2, 3)]).size(2)
            3
        """
        if dim is None:
            raise _no_geometry("sizes")
        dim = checked_dim(dim, self.dim())
        if dim == 0:
            return self._spec.batch
        found = {size[dim - 1] for size in self._spec.shown()}
        if len(found) != 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return found.pop()

    def dim(self):
        """The number of dimensions, that of the batch among them.

        Returns:
            int

        Example:
            >>> facula.nested.nested_tensor([facula.ones(1, 3), facula.zeros(2, 3)]).dim()
            3
        """
        return len(self._spec.order) + 1

    @property
    def ndim(self):
        """The number of dimensions, that of the batch among them."""
        return self.dim()

    def _nested_tensor_size(self):
        return facula.tensor(self._spec.shown(), dtype=facula.int64)

    def _nested_tensor_strides(self):
        plain = type(self)(self._values, self._spec)
        return facula.tensor([part.stride() for part in parts_of(plain)], dtype=facula.int64)

    def _nested_tensor_storage_offsets(self):
        ends = [0]
        for size in self._spec.sizes:
            ends.append(ends[-1] + math.prod(size))
        return facula.tensor(ends[:-1], dtype=facula.int64)

    def __repr__(self, *, tensor_contents=None):
        from facula._tensor_str import _add_suffixes

        with facula._C.DisableTorchFunctionSubclass():
            plain = type(self)(self._values, self._spec)
            needs, node = self.requires_grad, history_of(self)
            parts = [repr(part.requires_grad_(needs)) for part in parts_of(plain)]
        text = ",\n".join(parts)
        text = (
            "nested_tensor([\n"
            + "\n".join("  " + line if line else "" for line in text.split("\n"))
            + "\n]"
        )
        if node is not None:
            suffix = [f"grad_fn=<{node.name()}>"]
        else:
            suffix = ["requires_grad=True"] if needs else []
        return _add_suffixes(text, suffix, 0, False)

    def __reduce_ex__(self, protocol):
        # The name is that of PyTorch's files; order and gradients are told by strides and values.
        with facula._C.DisableTorchFunctionSubclass():
            values = self._values.detach().requires_grad_(self.requires_grad)
            place = (self._nested_tensor_strides(), self._nested_tensor_storage_offsets())
            return facula._utils._rebuild_nested_tensor, (
                values,
                self._nested_tensor_size(),
                *place,
            )


def rebuilt(values, sizes, strides, offsets):
    """A nested tensor of what a pickle says.

    Args:
        values (Tensor): all elements, of one dimension.
        sizes, strides (Tensor): of int64, [batch, dims].
        offsets (Tensor): of int64, [batch].

    Returns:
        StridedNestedTensor

    Raises:
        RuntimeError: the parts do not fit together.
    """
    for tensor in (values, sizes, strides, offsets):
        if not isinstance(tensor, facula.Tensor) or isinstance(tensor, Nested):
            raise RuntimeError("nested: values, sizes, strides and offsets must be plain tensors")
    shown, steps = sizes.tolist(), strides.tolist()
    first = steps[0] if steps and isinstance(steps[0], list) else []
    order = tuple(sorted(range(len(first)), key=lambda d: -first[d]))
    back = tuple(order.index(d) for d in range(len(order)))
    spec = StridedSpec([[size[d] for d in order] for size in shown], back)
    made = StridedNestedTensor(values.detach(), spec, values.requires_grad)
    count = sum(math.prod(size) for size in spec.sizes)
    fits = values.dim() == 1 and values.numel() == count and (not steps or len(steps) == len(shown))
    if not fits or made._nested_tensor_strides().tolist() != steps:
        raise RuntimeError(
            f"nested: sizes {shown} with strides {steps} must fill the {values.numel()} elements "
            "without gaps"
        )
    if made._nested_tensor_storage_offsets().tolist() != offsets.tolist():
        raise RuntimeError("nested: the tensors must lie one after the other")
    return made


def _no_geometry(what):
    return RuntimeError(f"Internal error: NestedTensorImpl doesn't support {what}.")


def parts_of(self):
    """The tensors in a nested tensor, as views of its values.

    Args:
        self (StridedNestedTensor): any.

    Returns:
        list of Tensor
    """
    spec, values = self._spec, values_of(self)
    if not spec.sizes:
        return []
    pieces = values.split([math.prod(size) for size in spec.sizes])
    shaped = [piece.view(size) for piece, size in zip(pieces, spec.sizes, strict=True)]
    return shaped if spec.is_contiguous else [piece.permute(spec.order) for piece in shaped]


def strided_of(parts, like=None):
    """A nested tensor of copies of tensors, with their history.

    Args:
        parts (list of Tensor): of one number of dimensions.
        like (Tensor): what tells dtype and device where there are no parts.

    Returns:
        StridedNestedTensor
    """
    if not parts:
        empty = facula.empty(0) if like is None else like.new_empty(0)
        return nested_of(empty, StridedSpec([]), StridedNestedTensor)
    values = facula.cat([part.reshape(-1) for part in parts])
    return nested_of(values, StridedSpec([p.shape for p in parts]), StridedNestedTensor)


def _wrapped(values, spec):
    return nested_of(values, spec, StridedNestedTensor)


def _is_strided(value):
    return isinstance(value, StridedNestedTensor)


def _in_memory_order(self):
    if self._spec.is_contiguous:
        return self
    return strided_of([part.contiguous() for part in parts_of(self)], self._values)


def _elementwise(name, func, args, kwargs):
    if kwargs.get("out") is not None:
        raise NotImplementedError(f"{name}(): out= is not supported for nested tensors")
    found = nested_arguments(args, kwargs)
    first = found[0] if found else args[0]
    if any(t._spec != first._spec for t in found):
        args = [mapped(a, lambda t: _in_memory_order(t) if _is_strided(t) else t) for a in args]
        first = args[0] if _is_strided(args[0]) else _in_memory_order(first)
    in_place = name.endswith("_") and not name.endswith("__")

    def change(value):
        if _is_strided(value):
            _check_sizes(name, first, value)
            return values_of(value)
        if isinstance(value, facula.Tensor) and value.numel() != 1:
            raise RuntimeError(
                f"{name}(): Expected both self and other to be nested, but got a nested self and "
                f"non-nested other"
            )
        return value

    rest = [mapped(value, change) for value in args[in_place:]]
    named = {key: mapped(value, change) for key, value in kwargs.items()}
    if in_place:
        return write(args[0], lambda values: func(values, *rest, **named))
    return mapped(func(*rest, **named), lambda values: _wrapped(values, first._spec))


def _check_sizes(name, a, b):
    if a._spec.shown() != b._spec.shown():
        raise RuntimeError(
            f"{name}(): nested tensors must have the same sizes; got {a._spec.shown()} and "
            f"{b._spec.shown()}"
        )


RULES = Rules("strided", _elementwise)
_rule = RULES.rule


def _each(self, change):
    return strided_of([change(part) for part in parts_of(self)], self._values)


for _name in (
    "masked_fill masked_fill_ dropout dropout_ fill_ zero_ zeros_like ones_like full_like "
    "empty_like rand_like randn_like to_dtype float double half bfloat16 int long bool type_as "
    "relu6 rsub silu square"
).split():

    def _run(func, *args, _name=_name, **kwargs):
        return _elementwise(_name, func, args, kwargs)

    _rule(_name, "nested tensors of the same sizes")(_run)


@_rule("shape stride", "none")
def _geometry(func, self, *args):
    raise _no_geometry("strides" if func.__name__ == "stride" else "sizes")


@_rule("size", "a dimension in which all sizes agree")
def _size(func, self, dim=None):
    return self.size(dim)


@_rule("dim ndim ndimension", "all")
def _dim(func, self):
    return self.dim()


@_rule("numel nelement", "all")
def _numel(func, self):
    return self._values.numel()


@_rule("is_nested", "all")
def _is_nested(func, self):
    return True


@_rule("layout", "all")
def _layout(func, self):
    return facula.strided


@_rule("is_contiguous", "all")
def _is_contiguous(func, self, memory_format=None):
    return self._spec.is_contiguous


@_rule("data_ptr storage_offset is_pinned is_shared untyped_storage", "all")
def _memory(func, self, *args):
    return func(self._values, *args)


@_rule("is_same_size", "all")
def _is_same_size(func, self, other):
    return self._spec.shown() == other._spec.shown()


@_rule("__len__ tolist numpy", "none")
def _no_sizes(func, self, *args):
    raise _no_geometry("sizes")


@_rule("__bool__ item", "one element")
def _as_number(func, self):
    if self._values.numel() != 1:
        if func.__name__ == "__bool__":
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        raise RuntimeError(
            f"a Tensor with {self._values.numel()} elements cannot be converted to Scalar"
        )
    return func(self._values.reshape(()))


@_rule("unbind", "dim 0")
def _unbind(func, self, dim=0):
    if dim not in (0, -self.dim()):
        raise RuntimeError(
            f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead."
        )
    return tuple(parts_of(self))


@_rule("__iter__", "all")
def _iterator(func, self):
    return iter(parts_of(self))


@_rule("__getitem__", "a tensor by its number")
def _getitem(func, self, key):
    key = key if isinstance(key, tuple) else (key,)
    if not key or not isinstance(key[0], int):
        raise NotImplementedError(
            f"__getitem__(): the first index of a nested tensor must be a number; got {key}"
        )
    batch = self._spec.batch
    if not -batch <= key[0] < batch:
        raise IndexError(f"index {key[0]} is out of bounds for dimension 0 with size {batch}")
    part = parts_of(self)[key[0]]
    return part[key[1:]] if len(key) > 1 else part


@_rule("select", "all dimensions")
def _select(func, self, dim, index):
    dim = checked_dim(dim, self.dim())
    if dim == 0:
        return _getitem(func, self, index)
    return _each(self, lambda part: part.select(dim - 1, index))


@_rule("clone detach alias", "all")
def _same_spec(func, self, *args, **kwargs):
    return _wrapped(func(values_of(self), *args, **kwargs), self._spec)


@_rule("data", "all")
def _data(func, self):
    return StridedNestedTensor(self._values, self._spec)


@_rule("contiguous", "all")
def _contiguous(func, self, memory_format=None):
    return _in_memory_order(self)


@_rule("to _to_copy cpu cuda pin_memory", "all but a change of layout")
def _to(func, self, *args, **kwargs):
    kwargs.pop("layout", None)
    args = [a._values if _is_strided(a) else a for a in args]
    moved = func(values_of(self), *args, **kwargs)
    same = moved.dtype == self.dtype and moved.device == self.device
    same = same and not moved.is_meta and moved.data_ptr() == self._values.data_ptr()
    return self if same else _wrapped(moved, self._spec)


@_rule("copy_", "nested tensors of the same sizes")
def _copy_(func, self, src, non_blocking=False):
    _check_sizes("copy_", self, src)
    if self._spec != src._spec:
        raise NotImplementedError("copy_(): nested tensors must be of the same order in memory")
    source = values_of(src)
    return write(self, lambda values: values.copy_(source))


@_rule("equal", "two nested tensors")
def _equal(func, self, other):
    return self._spec.shown() == other._spec.shown() and func(
        _in_memory_order(self)._values, _in_memory_order(other)._values
    )


@_rule("to_padded_tensor", "all")
def _to_padded_tensor(func, self, padding, output_size=None):
    shown = self._spec.shown()
    if not shown:
        raise RuntimeError("to_padded_tensor(): the nested tensor must have a tensor in it")
    size = [max(s[d] for s in shown) for d in range(self.dim() - 1)]
    if output_size is not None:
        given = list(output_size)
        if len(given) != self.dim() or any(
            a < b for a, b in zip(given, [self._spec.batch, *size], strict=True)
        ):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not "
                "supported."
            )
        batch, size = given[0], given[1:]
    else:
        batch = self._spec.batch
    rows = [_with_padding(part, size, padding) for part in parts_of(self)]
    rows += [self._values.new_full(size, padding)] * (batch - len(rows))
    return facula.stack(rows)


def _with_padding(part, size, padding):
    widths = []
    for whole, n in zip(reversed(size), reversed(part.shape), strict=True):
        widths += [0, whole - n]
    return facula.nn.functional.pad(part, widths, value=padding)


# --- shapes


@_rule("transpose swapaxes swapdims", "all dimensions but the batch")
def _transpose(func, self, dim0, dim1):
    a, b = checked_dim(dim0, self.dim()), checked_dim(dim1, self.dim())
    if a == 0 or b == 0:
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    order = list(self._spec.order)
    order[a - 1], order[b - 1] = order[b - 1], order[a - 1]
    return _wrapped(values_of(self), StridedSpec(self._spec.sizes, tuple(order)))


@_rule("mT", "all")
def _matrix_transpose(func, self):
    return _transpose(func, self, -2, -1)


@_rule("view reshape", "the batch stays; -1 keeps a tensor's own size, or is inferred")
def _view(func, self, *size):
    size = list(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    if not size or size[0] not in (-1, self._spec.batch):
        raise RuntimeError(
            f"view(): the first size must be the batch, {self._spec.batch}; got {size}"
        )

    def one(part):
        inner = size[1:]
        if inner.count(-1) > 1:
            inner = [part.shape[d] if n == -1 else n for d, n in enumerate(inner)]
        return part.reshape(inner) if func.__name__ == "reshape" else part.view(inner)

    shapes = [one(part).shape for part in parts_of(type(self)(self._values, self._spec))]
    if self._spec.is_contiguous:
        return _wrapped(values_of(self), StridedSpec(shapes))
    return _each(self, one)


@_rule("unsqueeze", "any place but before the batch")
def _unsqueeze(func, self, dim):
    dim = checked_dim(dim, self.dim() + 1)
    if dim == 0:
        raise RuntimeError("unsqueeze(): a nested tensor has no place before the batch; got dim 0")
    return _each(self, lambda part: part.unsqueeze(dim - 1))


@_rule("squeeze", "a dimension, not the batch")
def _squeeze(func, self, dim=None):
    if dim is None or checked_dim(dim, self.dim()) == 0:
        raise RuntimeError(f"squeeze(): a nested tensor needs a dimension but 0; got {dim}")
    inner = checked_dim(dim, self.dim()) - 1
    return _each(self, lambda part: part.squeeze(inner))


@_rule("chunk", "the last dimension")
def _chunk(func, self, chunks, dim=0):
    if checked_dim(dim, self.dim()) != self.dim() - 1:
        raise RuntimeError(
            "Chunk for nested tensors is currently only supported for the last dimension."
        )
    pieces = [part.chunk(chunks, -1) for part in parts_of(self)]
    return tuple(strided_of(list(group)) for group in zip(*pieces, strict=True))


@_rule("narrow", "dim 0")
def _narrow(func, self, dim, start, length):
    if checked_dim(dim, self.dim()) != 0:
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got: {dim}")
    if not 0 <= start <= start + length <= self._spec.batch:
        raise RuntimeError(
            f"narrow(): start and length must lie in the batch of {self._spec.batch}; got {start} "
            f"and {length}"
        )
    return strided_of(parts_of(self)[start : start + length], self._values)


@_rule("cat concat concatenate", "dim 0")
def _cat(func, tensors, dim=0):
    if dim != 0:
        raise RuntimeError(f"cat(): nested tensors are joined along dim 0 only; got {dim}")
    parts = []
    for tensor in tensors:
        parts += parts_of(tensor) if _is_strided(tensor) else list(tensor.unbind())
    return strided_of(parts)


# --- products, layers, reductions


def _together(name, a, b, compute):
    nested = [_is_strided(a), _is_strided(b)]
    if name == "matmul" and not all(nested):
        words = ["nested" if n else "non-nested" for n in nested]
        raise RuntimeError(
            f"Expected both to be nested, but got a {words[0]} self and {words[1]} other"
        )
    if a.size(0) != b.size(0):
        raise RuntimeError(
            f"{name}(): the batches must have one size; got {a.size(0)} and {b.size(0)}"
        )
    left = parts_of(a) if nested[0] else a.unbind()
    right = parts_of(b) if nested[1] else b.unbind()
    return strided_of([compute(x, y) for x, y in zip(left, right, strict=True)])


@_rule("matmul __matmul__ __rmatmul__", "two nested tensors")
def _matmul(func, a, b):
    a, b = (b, a) if func.__name__ == "__rmatmul__" else (a, b)
    return _together("matmul", a, b, facula.matmul)


@_rule("bmm", "three dimensions; one may be plain")
def _bmm(func, self, mat2):
    if self.dim() != 3 or mat2.dim() != 3:
        raise RuntimeError(
            f"bmm(): batch1 and batch2 must have 3 dimensions; got {self.dim()} and {mat2.dim()}"
        )
    return _together("bmm", self, mat2, facula.mm)


@_rule("linear", "plain weight and bias")
def _linear(func, input, weight, bias=None):
    if input.size(-1) != weight.shape[-1]:
        raise RuntimeError(
            f"linear(): the last dimension of a nested input must be {weight.shape[-1]}; got "
            f"{input.size(-1)}"
        )
    input = _in_memory_order(input)
    rows = values_of(input).view(-1, weight.shape[-1])
    sizes = [(*size[:-1], weight.shape[0]) for size in input._spec.sizes]
    return _wrapped(func(rows, weight, bias).reshape(-1), StridedSpec(sizes))


@_rule("layer_norm", "plain weight and bias")
def _layer_norm(func, input, normalized_shape, weight=None, bias=None, eps=1e-5, *rest):
    if weight is None or bias is None:
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    return _each(input, lambda part: func(part, normalized_shape, weight, bias, eps))


@_rule("embedding", "nested indices, a plain weight")
def _embedding(func, input, weight, *rest, **kwargs):
    return _each(input, lambda part: func(part, weight, *rest, **kwargs))


@_rule("softmax _softmax", "all dimensions but the batch")
def _softmax(func, self, dim=None, dtype=None, *more, _stacklevel=3, half_to_float=None):
    if isinstance(dtype, int):
        dtype = more[0] if more else None
    dim = 0 if dim is None else checked_dim(dim, self.dim())
    if dim == 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return _each(self, lambda part: facula.softmax(part, dim - 1, dtype=dtype))


@_rule("sum", "the last dimension, with keepdim")
def _sum(func, self, dim=None, keepdim=False, *, dtype=None):
    if dim is None:
        raise RULES.missing("sum")
    dims = [dim] if isinstance(dim, int) else list(dim)
    if len(dims) != 1:
        raise RuntimeError("NestedTensor only allows reduction of a single dimension for now.")
    if checked_dim(dims[0], self.dim()) != self.dim() - 1:
        raise RuntimeError(
            "NestedTensor can only be reduced across the last dimension for now got dimension "
            f"{dims[0]} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return _each(self, lambda part: part.sum(-1, keepdim=True, dtype=dtype))


@_rule("scaled_dot_product_attention", "nested query, key and value; no attn_mask")
def _attention(func, query, key, value, attn_mask=None, *rest, **kwargs):
    if attn_mask is not None or not all(_is_strided(t) for t in (query, key, value)):
        raise ValueError(
            "scaled_dot_product_attention(): query, key and value must be nested tensors, without "
            "attn_mask"
        )
    parts = zip(parts_of(query), parts_of(key), parts_of(value), strict=True)
    return strided_of([func(q, k, v, None, *rest, **kwargs) for q, k, v in parts])
