"""Methods of Tensor that are written in Python; the core imports this at the first call of one.

`default_torch_function` is `Tensor.__torch_function__`; the others bear the names of the methods.
"""

from __future__ import annotations

import facula
from facula import _C, _layouts, _utils, functional, overrides

_Tensor, _class = _C.Tensor, type


def default_torch_function(cls, func, types, args=(), kwargs=None):
    """Run `func` without overrides of subclasses; results become instances of `cls`."""
    if not all(issubclass(cls, one) for one in types):
        return NotImplemented
    with _C.DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    if func in overrides.get_default_nowrap_functions():
        return result
    return _converted(result, cls)


def _converted(result, cls):
    if cls is _Tensor:
        return result
    if isinstance(result, _Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        items = [_converted(item, cls) for item in result]
        return result.__class__(items)
    return result


def __deepcopy__(self, memo):
    """A copy with memory of its own; leaves only."""
    if not self.is_leaf:
        raise RuntimeError(
            "deepcopy(): only leaves of the graph can be copied; got a tensor that an operation "
            "made (detach() gives a leaf)"
        )
    if id(self) in memo:
        return memo[id(self)]
    with facula.no_grad():
        result = _copied_instance(self, memo)
        if self.requires_grad:
            result.requires_grad_()
        if self.grad is not None:
            result.grad = self.grad.__deepcopy__(memo)
        if self.__class__ is not _Tensor or self.__dict__:
            from copy import deepcopy

            result.__dict__ = deepcopy(self.__dict__, memo)
    memo[id(self)] = result
    return result


def _copied_instance(self, memo):
    """A copy of the tensor's own class, by what the class defines."""
    if self.__class__ is _Tensor:
        return _copied(self, memo)
    if _is_wrapper(self):
        return _same_class(self, self.clone(), "wrapper subclasses", "clone()")
    made = _same_class(self, self.new_empty([]), "non-wrapper subclasses", "new_empty()")
    return made.set_(_copied(self.detach().as_subclass(_Tensor), memo))


def _is_wrapper(self):
    # A header without memory: only its class knows what it holds.
    return not self.is_meta and self.data_ptr() == 0 and self.numel() > 0


def _same_class(self, made, kinds, method):
    if made.__class__ is self.__class__:
        return made
    raise RuntimeError(
        f"__deepcopy__(): {kinds} are copied by {method}, which must give an object of the same "
        f"class; define it, or __deepcopy__(), in {self.__class__.__name__}"
    )


def _copied(self, memo):
    of_layout = _layouts.copied(self, memo)
    if of_layout is not None:
        return of_layout
    # Tensors over one storage are over one storage in the copy, too.
    if self.is_meta:
        return self.detach().clone()
    if self.is_conj():
        return self.detach().conj().conj_physical()
    if self.is_neg():
        return facula._neg_view(self.detach()).neg()
    storage = self.untyped_storage().__deepcopy__(memo)
    if self.is_quantized:
        return _over_storage(self, storage)
    return _C._tensor_from_storage(
        storage, self.dtype, self.storage_offset(), self.size(), self.stride(), False
    )


def _over_storage(self, storage):
    """A quantized tensor as `self`, over another storage."""
    from facula.serialization import _core, _rebuild

    function, (_, *rest) = _rebuild._quantized_reduction(self)
    return function(_core.typed(storage, self.dtype), *rest)


def qscheme(self):
    """How the integers of a quantized tensor stand for values: a `facula.qscheme`."""
    from facula._qscheme import scheme_of

    return scheme_of(self)


def __array_wrap__(self, array, context=None, return_scalar=False):
    """What NumPy's functions make of an array that they computed from tensors."""
    if array.dtype == bool:  # as PyTorch does since it had no dtype for truths
        array = array.astype("uint8")
    return facula.from_numpy(array)


def __reduce_ex__(self, proto):
    """How pickle keeps a tensor: storage and geometry."""
    from facula.serialization import _rebuild

    function, args = _rebuild.tensor_reduction(self)
    if function.name != _rebuild_from_type_v2.__name__:
        return _importable(function), args
    inner, *others = args
    return _rebuild_from_type_v2, (_importable(inner), *others)


def _importable(name):
    """The function of this package that a pickle's name means, as other pickles can name it."""
    module = {"torch._utils": _utils, "torch._layouts": _layouts}[name.module]
    return getattr(module, name.name)


def _rebuild_from_type_v2(function, new_type, args, state):
    """Make a tensor of a subclass, with Python attributes."""
    from facula.serialization import _rebuild

    return _rebuild.rebuild_from_type(function, new_type, args, state)


def __setstate__(self, state):
    """Take over what `__reduce_ex__` of old kept."""
    if not self.is_leaf:
        raise RuntimeError("__setstate__(): only a leaf can take a state")
    self.requires_grad, _, self._backward_hooks = state


def __reversed__(self):
    """The tensor with its dimensions in reverse order of elements."""
    return self if self.dim() == 0 else self.flip(0)


def __dir__(self):
    """The names of all attributes."""
    return sorted({*dir(self.__class__), *self.__dict__})


def type_(self, dtype=None, non_blocking=False, **kwargs):
    """The name of the tensor's legacy type; with a dtype or such a name, a conversion."""
    if dtype is None:
        place = "torch.quantized" if self.is_quantized else "torch"
        return f"{place}.{self.dtype._legacy_name}Tensor"
    if isinstance(dtype, str):
        name = dtype.rsplit(".", 1)[-1]
        matching = [d for d in _dtypes() if f"{d._legacy_name}Tensor" == name]
        if not matching:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = matching[0]
    elif isinstance(dtype, _class):
        dtype = _dtype_of_class(dtype)
    return self.to(dtype, non_blocking=non_blocking)


def _dtype_of_class(kind):
    """The dtype that a class of tensors of old (LongTensor) makes."""
    if kind is _Tensor:
        return facula.get_default_dtype()
    from facula import _legacy

    if not isinstance(kind, _legacy._LegacyType):
        raise ValueError(f"invalid type: '{kind.__name__}'")
    return kind.dtype


def _dtypes():
    return {value for value in vars(facula).values() if isinstance(value, facula.dtype)}


def new(self, *args, **kwargs):
    """A tensor of the same dtype and device, from sizes, data or a storage."""
    if len(args) == 1 and facula.is_storage(args[0]):
        return facula.empty(0, dtype=self.dtype, device=self.device).set_(args[0])
    return _Tensor(*args, **kwargs).to(self.dtype)


def new_tensor(
    self, data, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False
):
    """A tensor with a copy of `data`, of this tensor's dtype and device unless given."""
    dtype = self.dtype if dtype is None else dtype
    device = self.device if device is None else device
    if isinstance(data, _Tensor):
        return data.detach().clone().to(dtype=dtype, device=device).requires_grad_(requires_grad)
    return facula.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def split(self, split_size, dim=0):
    """Views of `split_size` (int, or a list of sizes) along `dim`; returns a tuple."""
    return functional.split(self, split_size, dim)


def norm(self, p="fro", dim=None, keepdim=False, dtype=None):
    """The norm of the tensor, or of its slices along `dim`."""
    return functional.norm(self, p, dim, keepdim, dtype=dtype)


def nonzero(self, *, as_tuple=False):
    """Coordinates of the elements that are not zero; see `facula.nonzero`."""
    return functional.nonzero(self, as_tuple=as_tuple)


def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements, or slices along `dim`."""
    return functional.unique(self, sorted, return_inverse, return_counts, dim)


def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):
    """The first element of every run of equal ones."""
    return functional.unique_consecutive(self, return_inverse, return_counts, dim)


def stft(self, *args, **kwargs):
    """The short-time Fourier transform; see `facula.stft`."""
    return functional.stft(self, *args, **kwargs)


def istft(self, *args, **kwargs):
    """The inverse of the short-time Fourier transform; see `facula.istft`."""
    return functional.istft(self, *args, **kwargs)


def lu(self, pivot=True, get_infos=False):
    """LU factors and the rows that changed places; see `facula.lu`."""
    return functional.lu(self, pivot, get_infos)


def cholesky(self, upper=False):
    """Removed: `facula.linalg.cholesky`."""
    return facula.cholesky(self, upper)


def qr(self, some=True):
    """Removed: `facula.linalg.qr`."""
    return facula.qr(self, some)


def solve(self, other):
    """Removed: `facula.linalg.solve`."""
    return facula.solve(self, other)


def lstsq(self, other):
    """Removed: `facula.linalg.lstsq`."""
    return facula.lstsq(self, other)


def eig(self, eigenvectors=False):
    """Removed: `facula.linalg.eig`."""
    return facula.eig(self, eigenvectors)


def symeig(self, eigenvectors=False):
    """Removed: `facula.linalg.eigh`."""
    return facula.symeig(self, eigenvectors)


# What Python 2 called these operators; programs that name them find them.


def __div__(self, other):
    """self / other, as Python 2 called it."""
    return self.__truediv__(other)


def __rdiv__(self, other):
    """other / self, as Python 2 called it."""
    if not isinstance(self, facula.Tensor):
        raise AttributeError(f"__rdiv__(): expected a tensor to divide by; got {self!r}")
    return self.__rtruediv__(other)


def __idiv__(self, other):
    """self /= other, as Python 2 called it."""
    return self.__itruediv__(other)


def __long__(self):
    """int(self), as Python 2 called it."""
    return int(self)


def __nonzero__(self):
    """bool(self), as Python 2 called it."""
    return bool(self)


def unflatten(self, dim, sizes):
    """Dimension `dim` split into several of the given sizes; one of them may be -1."""
    if not sizes:
        raise RuntimeError("unflatten(): sizes must not be empty")
    if isinstance(sizes, int):
        raise TypeError("unflatten(): argument 'sizes' (position 2) must be tuple of ints, not int")
    return facula.ops.aten.unflatten.int(self, dim, list(sizes))


def share_memory_(self):
    """Move the memory to where other processes share it."""
    self.untyped_storage().share_memory_()
    return self


def is_pinned(self, device=None):
    """Whether the memory is page-locked, for copies that need not be waited for."""
    return _C._is_pinned(self)


def pin_memory(self, device=None):
    """A copy in page-locked memory, or self where it is; RuntimeError without an accelerator."""
    return self if _C._is_pinned(self) else _C._pin_memory(self)


def record_stream(self, s):
    """Say that a stream uses the memory too: after its release it waits for that stream's work."""
    _C._record_stream(self, s)


def module_load(self, other, assign=False):
    """What `Module.load_state_dict` makes of `other` in place of this parameter."""
    if assign:
        return other.detach()
    return self.copy_(other).detach()


def dim_order(self, *, ambiguity_check=False):
    """The dimensions from the outermost in memory to the innermost; returns a tuple."""
    strides = self.stride()
    return tuple(sorted(range(self.dim()), key=lambda d: (-strides[d], d)))


# The method's name, given last: the functions above mean Python's own.
globals()["type"] = type_


def is_same_size(self, other):
    """Whether another tensor has the same sizes."""
    return functional.is_same_size(self, other)


def is_set_to(self, tensor):
    """Whether both tensors show the same elements of one storage in the same geometry."""
    functional._check_tensors("is_set_to", tensor=tensor)
    return (
        self.untyped_storage()._cdata == tensor.untyped_storage()._cdata
        and self.storage_offset() == tensor.storage_offset()
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
    )


def index(self, positions, dims):
    """Index some dimensions, named by their positions; the others stay whole.

    Args:
        positions (int, or sequence of int or tuple of int): dimensions of this tensor; a tuple
            among them means its dimensions flattened into one, at the place of the first.
        dims (index, or sequence of them): for each position an int, slice, tensor or sequence, with
            the meaning that it has between brackets.

    Returns:
        Tensor

    Raises:
        TypeError: a position is no integer, or there are more positions than indices or fewer.
        IndexError: a position is no dimension of the tensor.

    Example:
        >>> facula.arange(6).reshape(2, 3).index((0, 1), (1, 2))
        tensor(5)
    """
    if not isinstance(positions, (tuple, list)):
        positions, dims = (positions,), (dims,)
    if not isinstance(dims, (tuple, list)) or len(dims) != len(positions):
        count = len(dims) if isinstance(dims, (tuple, list)) else 1
        raise TypeError(
            f"index(): expected as many indices as positions; got {len(positions)} positions and "
            f"{count} indices"
        )
    places = [position if isinstance(position, tuple) else (position,) for position in positions]
    found = {}
    for place, one in zip(places, dims, strict=True):
        group = tuple(_place_of(self, position) for position in place)
        found.setdefault(group, list(one) if isinstance(one, tuple) else one)
    whole = [group for group in found if group]
    taken = {dim for group in whole for dim in group}
    starts = {group[0]: group for group in whole}
    groups = [starts.get(d, (d,)) for d in range(self.dim()) if d in starts or d not in taken]
    flat = self.permute([d for group in groups for d in group])
    for at, group in enumerate(groups):
        flat = flat.flatten(at, at + len(group) - 1) if len(group) > 1 else flat
    return flat[tuple(found.get(group, slice(None)) for group in groups)] if whole else self


def _place_of(self, position):
    """A dimension's number from 0, of one that may count from the end."""
    if isinstance(position, bool) or not isinstance(position, int):
        raise TypeError(f"index(): expected positions that are ints; got {position!r}")
    if not -self.dim() <= position < self.dim():
        raise IndexError(
            f"index(): expected positions from {-self.dim()} to {self.dim() - 1}; got {position}"
        )
    return position % self.dim()


def to_mkldnn(self, dtype=None):
    """A copy in oneDNN's own layout; facula's kernels use strided memory, so there is none."""
    raise RuntimeError(
        "to_mkldnn(): expected a build with oneDNN; got facula, whose kernels block dense tensors "
        "themselves (backends.mkldnn.is_available() is False): leave the tensor as it is"
    )


def to_padded_tensor(self, padding, output_size=None):
    """The padded form of a nested tensor, whose class has the method; others have none."""
    raise NotImplementedError(
        f"to_padded_tensor(): expected a nested tensor; got a {self.layout} tensor of shape "
        f"{list(self.shape)}"
    )
