"""The rules of the jagged layout: `RULES.table` has what each name does."""

from __future__ import annotations

import facula

from .base import nested_of, values_of, write
from .nested_tensor import NestedTensor
from .padding import compact, from_padded, to_padded
from .rules import Rules, mapped, nested_arguments


def is_jagged(value):
    """Whether a value is a nested tensor of the jagged layout."""
    return isinstance(value, NestedTensor)


def wrapped(values, spec):
    """A jagged tensor of values, with their history."""
    return nested_of(values, spec, NestedTensor)


def check_plain(name, **arguments):
    """Raise where an argument must not be nested.

    Raises:
        ValueError: it is.
    """
    for key, value in arguments.items():
        if is_jagged(value):
            raise ValueError(f"{name}(): {key} must be a plain tensor; got {tuple(value.shape)}")


def check_nested(name, input):
    """Raise where the input is not nested, and some other argument is.

    Raises:
        ValueError: the input is a plain tensor.
    """
    if not is_jagged(input):
        got = tuple(input.shape) if isinstance(input, facula.Tensor) else type(input).__name__
        raise ValueError(f"{name}(): input must be a jagged tensor; got {got}")


def _elementwise(name, func, args, kwargs):
    """An elementwise function: of the values, with plain tensors brought into their shape."""
    if kwargs.get("out") is not None:
        raise ValueError(f"{name}(): out= is not supported for nested tensors of layout jagged")
    if name.endswith("_") and not name.endswith("__"):
        check_nested(name, args[0])
        place = args[0]
        rest, named = _of_values(name, place, args[1:], kwargs)
        return write(place, lambda values: func(values, *rest, **named))
    found = nested_arguments(args, kwargs)
    if not found:
        return func(*args, **kwargs)
    like = _widest(found)
    args, kwargs = _of_values(name, like, args, kwargs)
    return mapped(func(*args, **kwargs), lambda values: wrapped(values, like._spec))


def _widest(found):
    return max(found, key=lambda t: t._values.dim())


def _of_values(name, like, args, kwargs):
    """Arguments with values in place of nested tensors and of tensors that meet them."""

    def change(value):
        if is_jagged(value):
            return _matching(name, like, value)
        return _broadcast(name, like, value) if isinstance(value, facula.Tensor) else value

    args = [mapped(value, change) for value in args]
    return args, {key: mapped(value, change) for key, value in kwargs.items()}


def _matching(name, like, other):
    if other is not like:
        fits = like._spec.same_lengths(other._spec) and like._values.dim() == other._values.dim()
        if not fits:
            raise _mismatch(name, like.shape, other.shape)
    return values_of(other)


def _mismatch(name, a, b):
    return RuntimeError(
        f"cannot call binary pointwise function {name} with inputs of shapes {_shape(a)} and "
        f"{_shape(b)}"
    )


def _shape(shape):
    return tuple(shape)


def _broadcast(name, like, dense):
    """A plain tensor as it meets the values; its ragged dimension is 1 or padded."""
    spec, ndim, given = like._spec, like._values.dim() + 1, dense.shape
    if dense.dim() == 0:
        return dense
    if dense.dim() > ndim:
        raise NotImplementedError(
            f"{name}(): a plain tensor must have no more dimensions than the nested one, {ndim}; "
            f"got {dense.dim()}"
        )
    dense = dense.reshape(*(1,) * (ndim - dense.dim()), *given)
    ragged = spec.ragged_idx
    if dense.shape[0] == 1 and dense.shape[ragged] == 1:
        return dense.squeeze(0)
    if dense.shape[0] != spec.batch:
        raise _mismatch(name, like.shape, given)
    if dense.shape[ragged] == 1:
        which = spec.sequence_of_each_row(like._values)
        return dense.squeeze(ragged).index_select(0, which).movedim(0, spec.inner)
    longest = spec.known().max_seqlen
    if dense.shape[ragged] != longest or spec.lengths is not None:
        raise RuntimeError(
            f"{name}(): dimension {ragged} of a plain tensor must be 1 or the greatest length, "
            f"{longest}; got shape {tuple(given)}"
        )
    return from_padded(dense, spec)


RULES = Rules("jagged", _elementwise)
rule = RULES.rule

# What works on each element by itself although the record of its name does not say so: random
# functions, copies to other types, compositions.
_ELEMENTWISE = (
    "masked_fill masked_fill_ dropout dropout_ alpha_dropout feature_dropout relu6 threshold_ "
    "rrelu type_as frexp isin bernoulli_ uniform_ normal_ "
    "log_normal_ exponential_ cauchy_ geometric_ random_ fill_ zero_ softmin_ "
    "float double half bfloat16 int long short char byte bool cfloat cdouble to_dtype "
    "zeros_like ones_like empty_like full_like rand_like randn_like randint_like "
    "hardswish hardsigmoid clip clip_ fill native_dropout isclose nan_to_num_ "
    "square square_ absolute negative divide multiply subtract true_divide rsub sub_ "
    "conj resolve_conj resolve_neg real imag view_as_real positive chalf clamp_ "
    "mish softsign tanhshrink logsigmoid celu selu leaky_relu hardtanh elu glu_ not_equal "
    "greater greater_equal less less_equal"
).split()


def _rule_of_each(name):
    def run(func, *args, **kwargs):
        return _elementwise(name, func, args, kwargs)

    return run


for _name in _ELEMENTWISE:
    rule(_name, "any arguments whose ragged dimensions agree")(_rule_of_each(_name))


# --- what a tensor is


@rule("shape _size", "all")
def _shape_of(func, self):
    return self.shape


@rule("size stride", "all")
def _size(func, self, dim=None):
    return (self.size if func.__name__ == "size" else self.stride)(dim)


@rule("dim ndim ndimension", "all")
def _dim(func, self):
    return self.dim()


@rule("numel nelement", "all")
def _numel(func, self):
    return self.numel()


@rule("is_nested", "all")
def _is_nested(func, self):
    return True


@rule("layout", "all")
def _layout(func, self):
    return facula.jagged


@rule("nbytes", "all")
def _nbytes(func, self):
    return self.numel() * self.element_size()


@rule("storage_offset data_ptr is_pinned is_shared is_set_to", "all")
def _of_values_memory(func, self, *args):
    return func(self._values, *args)


@rule("is_contiguous", "all")
def _is_contiguous(func, self, memory_format=facula.contiguous_format):
    return self._spec.lengths is None and self._values.is_contiguous()


@rule("is_same_size", "all")
def _is_same_size(func, self, other):
    return self.shape == other.shape


@rule("__len__", "all")
def _length(func, self):
    return self._spec.batch


@rule("__iter__", "all")
def _iterator(func, self):
    return iter(_parts(self))


@rule("__bool__ item __float__ __int__ __index__ __complex__", "one element")
def _as_number(func, self):
    if self.numel() != 1:
        if func.__name__ == "__bool__":
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
    return func(compact(self._values, self._spec)[0].reshape(()))


@rule("tolist numpy __array__ __dlpack__ untyped_storage storage", "none")
def _no_export(func, self, *args, **kwargs):
    raise RuntimeError(
        f".{func.__name__}() is not supported for tensor subclasses, got NestedTensor"
    )


@rule("is_non_overlapping_and_dense", "all")
def _is_dense(func, self):
    return self._spec.lengths is None


# --- parts


def _parts(self, values=None):
    values = values_of(self) if values is None else values
    spec, known = self._spec, self._spec.known()
    if spec.lengths is None and sum(known.lengths) == values.shape[spec.inner]:
        return values.split(known.lengths, spec.inner)
    places = zip(known.starts, known.lengths, strict=True)
    return tuple(values.narrow(spec.inner, start, length) for start, length in places)


@rule("unbind", "dim 0")
def unbind(func, self, dim=0):
    if dim not in (0, -self.dim()):
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return tuple(_parts(self))


@rule("to_padded_tensor", "sequences side by side")
def _to_padded_tensor(func, self, padding, output_size=None):
    if self._spec.lengths is not None:
        raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
    size = None
    if output_size is not None:
        if len(output_size) != self.dim():
            raise RuntimeError(
                f"to_padded_tensor(): output_size must have {self.dim()} sizes; got "
                f"{tuple(output_size)}"
            )
        size = int(output_size[self._spec.ragged_idx])
    return to_padded(values_of(self), self._spec, padding, size)


# --- copies


@rule("clone detach alias", "all")
def _same_spec(func, self, *args, **kwargs):
    return wrapped(func(values_of(self), *args, **kwargs), self._spec)


@rule("data", "all")
def _data(func, self):
    return NestedTensor(self._values, self._spec)


@rule("contiguous", "all")
def _contiguous(func, self, memory_format=facula.contiguous_format):
    if self._spec.lengths is None:
        if self._values.is_contiguous():
            return self
        return wrapped(values_of(self).contiguous(), self._spec)
    made, spec = compact(values_of(self), self._spec)
    return wrapped(made.contiguous(), spec)


@rule("to _to_copy cpu cuda pin_memory", "all but a change of layout")
def _to(func, self, *args, **kwargs):
    layout = kwargs.pop("layout", None)
    if layout not in (None, facula.jagged):
        raise RuntimeError(f"to(): the layout of a jagged tensor cannot change; got {layout}")
    args = [a._values if is_jagged(a) else a for a in args]
    moved = func(values_of(self), *args, **kwargs)
    spec = self._spec.moved(moved.device)
    same = moved.dtype == self.dtype and moved.device == self.device
    aliased = moved.data_ptr() == self._values.data_ptr() if same and not moved.is_meta else False
    return self if aliased else wrapped(moved, spec)


@rule("copy_", "a jagged tensor with the same lengths")
def _copy_(func, self, src, non_blocking=False):
    check_nested("copy_", self)
    check_nested("copy_", src)
    if self.shape != src.shape:
        same = _shape(self.shape)[1:] == _shape(src.shape)[1:]
        lengths = self._spec.known().lengths == src._spec.known().lengths
        if same or not lengths or self._values.shape != src._values.shape:
            raise RuntimeError(
                "copy_(): expected compatible input and src shapes, but got: "
                f"{self.shape} and {src.shape}"
            )
    source = values_of(src)
    return write(self, lambda values: values.copy_(source, non_blocking=non_blocking))


@rule("new_empty new_zeros new_ones new_full new_tensor", "sizes of a plain tensor")
def _new(func, self, *args, **kwargs):
    return func(self._values, *args, **kwargs)


@rule("equal", "two jagged tensors")
def _equal(func, self, other):
    check_nested("equal", self)
    check_nested("equal", other)
    return self.shape == other.shape and func(
        compact(self._values, self._spec)[0], compact(other._values, other._spec)[0]
    )


@rule("broadcast_tensors", "tensors that elementwise functions take together")
def _broadcast_tensors(func, *tensors):
    tensors = tensors[0] if len(tensors) == 1 else tensors
    like = _widest([t for t in tensors if is_jagged(t)])
    flat, _ = _of_values("broadcast_tensors", like, tensors, {})
    return tuple(wrapped(values, like._spec) for values in func(*flat))


@rule("expand expand_as broadcast_to", "the batch and the ragged dimension stay as they are")
def _expand(func, self, *size):
    if func.__name__ == "expand_as":
        size = size[0].shape
    elif len(size) == 1 and not isinstance(size[0], int):
        size = size[0]
    spec, shape = self._spec, self.shape
    kept = len(size) == len(shape) and all(size[d] in (-1, shape[d]) for d in (0, spec.ragged_idx))
    if not kept:
        raise RuntimeError(f"expand(): cannot expand shape {_shape(shape)} -> {list(size)}")
    inner = list(size[1:])
    inner[spec.inner] = self._values.shape[spec.inner]
    return wrapped(values_of(self).expand(inner), spec)


from . import layers, products, reductions, sdpa, shapes  # noqa: E402, F401 (each enters its rules)
