"""Tensors to what a pickle says of them, and back.

The functions on the reading side are called with values of an untrusted file: they check what
they get and do no more than build a tensor.
"""

from collections import OrderedDict

import facula
from facula import _layouts

from . import _core


class GlobalName:
    """A function or class that a pickle names, whether or not it can be imported here."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self, *args):
        return function_named(self.module, self.name)(*args)

    def __reduce__(self):
        # Other picklers than ours cannot write a name that is not importable here.
        return function_named, (self.module, self.name)


def rebuild_tensor(storage, storage_offset, size, stride):
    """A tensor over a typed storage; raises RuntimeError when it would reach outside."""
    return rebuild_tensor_v2(storage, storage_offset, size, stride, False, None)


def rebuild_tensor_v2(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None
):
    """A tensor over a typed storage, with gradient flag and conjugate and negative bits."""
    return rebuild_tensor_v3(
        storage,
        storage_offset,
        size,
        stride,
        requires_grad,
        backward_hooks,
        getattr(storage, "dtype", None),
        metadata,
    )


def rebuild_tensor_v3(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None
):
    """A tensor of any dtype over a storage, with gradient flag and conjugate and negative bits."""
    if not _core.is_storage(storage) or not isinstance(dtype, facula.dtype):
        raise RuntimeError("load(): a tensor's storage or dtype is of another type")
    base = _core.untyped(storage)
    tensor = _core.tensor_over(base, dtype, storage_offset, size, stride, False)
    metadata = metadata or {}
    tensor = tensor.conj() if metadata.get("conj") else tensor
    tensor = facula._neg_view(tensor) if metadata.get("neg") else tensor
    return _with_grad(tensor, requires_grad, backward_hooks)


def _with_grad(tensor, requires_grad, backward_hooks):
    tensor.requires_grad_(bool(requires_grad))
    return _with_hooks(tensor, backward_hooks)


def rebuild_meta_tensor(dtype, size, stride, requires_grad):
    """A tensor of the meta device."""
    if not isinstance(dtype, facula.dtype):
        raise RuntimeError("load(): a meta tensor's dtype is of another type")
    return _core.meta_tensor(dtype, size, stride, bool(requires_grad))


def rebuild_parameter(data, requires_grad, backward_hooks):
    """A Parameter over a tensor."""
    from facula.nn.parameter import Parameter

    return _with_hooks(Parameter(data, bool(requires_grad)), backward_hooks)


def _with_hooks(tensor, backward_hooks):
    # Writers put an empty dict here, which says nothing.
    if backward_hooks is None or (isinstance(backward_hooks, dict) and not backward_hooks):
        return tensor
    if not isinstance(backward_hooks, dict):
        raise RuntimeError("load(): the hooks of a tensor are not a dict")
    tensor._backward_hooks = backward_hooks
    return tensor


def rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    """A Parameter over a tensor, with Python attributes."""
    return set_state(rebuild_parameter(data, requires_grad, backward_hooks), state)


def rebuild_sparse_tensor(layout, data):
    """A sparse tensor of its parts; their consistency is checked."""
    if layout == facula.sparse_coo:
        indices, values, size, *coalesced = data
        return facula.sparse_coo_tensor(
            indices,
            values,
            size,
            check_invariants=True,
            is_coalesced=coalesced[0] if coalesced else None,
        )
    compressed, plain, values, size = data
    return facula.sparse_compressed_tensor(
        compressed, plain, values, size, layout=layout, check_invariants=True
    )


_INTEGERS = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}
_PER_BYTE = {"quint4x2": 2, "quint2x4": 4}


def _stored_integers(base, name, storage_offset, size, stride):
    """The integers of a quantized tensor: plain ones, or the bytes that several share."""
    if name in _INTEGERS:
        dtype = getattr(facula, _INTEGERS[name])
        return _core.tensor_over(base, dtype, storage_offset, size, stride, False)
    if name not in _PER_BYTE:
        raise RuntimeError(f"load(): a quantized tensor is over a storage of {name}")
    if storage_offset:
        raise NotImplementedError("load(): a view of packed quantized elements")
    return _core.tensor_over(base, facula.uint8, 0, (base.nbytes(),), (1,), False)


def rebuild_quantized_tensor(
    storage, storage_offset, size, stride, quantizer_params, requires_grad, backward_hooks
):
    """A quantized tensor over a typed storage; raises RuntimeError where the parts do not fit."""
    dtype = getattr(storage, "dtype", None)
    if not _core.is_storage(storage) or not isinstance(dtype, facula.dtype):
        raise RuntimeError("load(): a tensor's storage is of another type")
    name, base = _core.dtype_name(dtype), _core.untyped(storage)
    integers = _stored_integers(base, name, storage_offset, size, stride)
    if not isinstance(quantizer_params, tuple) or not quantizer_params:
        raise RuntimeError("load(): a quantized tensor's parameters are not a tuple")
    scheme, *rest = quantizer_params
    if scheme is facula.per_tensor_affine and len(rest) == 2:
        scale, zero_point = float(rest[0]), int(rest[1])
        make, args = facula.ops.aten._over_per_tensor_integers, (scale, zero_point)
    elif len(rest) == 3 and all(isinstance(t, facula.Tensor) for t in rest[:2]):
        make, args = facula.ops.aten._over_per_channel_integers, (*rest[:2], int(rest[2]))
    else:
        raise RuntimeError(f"load(): a quantized tensor of scheme {scheme!r}")
    return _with_grad(make(integers, dtype, size, *args), requires_grad, backward_hooks)


def rebuild_wrapper_subclass(
    kind, dtype, size, stride, storage_offset, layout, device, requires_grad
):
    """A tensor subclass that has a geometry but no memory; its attributes come after it."""
    if not (isinstance(kind, type) and issubclass(kind, facula.Tensor)):
        raise RuntimeError("load(): a tensor is to become what is not a tensor class")
    return facula.Tensor._make_wrapper_subclass(
        kind,
        size,
        strides=stride,
        storage_offset=storage_offset,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=bool(requires_grad),
    )


def rebuild_jagged(state):
    """A jagged nested tensor of its parts."""
    from facula.nested._internal import nested_tensor

    return nested_tensor._rebuild_njt(state)


def rebuild_nested(buffer, sizes, strides, offsets):
    """A nested tensor of layout strided of its elements and where they lie."""
    from facula.nested._internal import strided

    return strided.rebuilt(buffer, sizes, strides, offsets)


def rebuild_from_type(function, new_type, args, state):
    """A tensor of a subclass, with Python attributes."""
    if not (isinstance(new_type, type) and issubclass(new_type, facula.Tensor)):
        raise RuntimeError("load(): a tensor is to become what is not a tensor class")
    tensor = function(*args)
    if type(tensor) is not new_type:
        tensor = tensor.as_subclass(new_type)
    return tensor if state is None else set_state(tensor, state)


def _is_attribute_name(name):
    return isinstance(name, str) and not name.startswith("__")


def set_state(obj, state):
    """Gives `obj` its saved attributes: a dict, or a pair of a dict and a dict of slots."""
    own = getattr(type(obj), "__setstate__", None)
    if own not in (None, getattr(facula.Tensor, "__setstate__", None)):
        obj.__setstate__(state)
        return obj
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    for items in (attributes or {}, slots or {}):
        if not isinstance(items, dict) or not all(map(_is_attribute_name, items)):
            raise RuntimeError(f"load(): attributes of {type(obj).__name__} have a refused name")
    if attributes:
        obj.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        object.__setattr__(obj, name, value)
    return obj


_LAYOUTS = frozenset(
    "torch." + name
    for name in (
        "strided",
        "sparse_coo",
        "sparse_csr",
        "sparse_csc",
        "sparse_bsr",
        "sparse_bsc",
        "jagged",
        "_mkldnn",
    )
)


def layout_named(name):
    """`facula.strided` for "torch.strided"."""
    known = isinstance(name, str) and name in _LAYOUTS
    layout = getattr(facula, name.rpartition(".")[2], None) if known else None
    if not isinstance(layout, facula.layout):
        raise RuntimeError(f"load(): unknown layout {name if known else type(name)}")
    return layout


FUNCTIONS = {
    "torch._utils._rebuild_tensor": rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": rebuild_tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuild_meta_tensor,
    "torch._utils._rebuild_parameter": rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild_parameter_with_state,
    "torch._utils._rebuild_sparse_tensor": rebuild_sparse_tensor,
    "torch._utils._rebuild_qtensor": rebuild_quantized_tensor,
    "torch._utils._rebuild_wrapper_subclass": rebuild_wrapper_subclass,
    "torch._utils._rebuild_nested_tensor": rebuild_nested,
    "torch.nested._internal.nested_tensor._rebuild_njt": rebuild_jagged,
    "torch._tensor._rebuild_from_type_v2": rebuild_from_type,
    "torch.serialization._get_layout": layout_named,
    "torch._layouts.rebuild": _layouts.rebuild,
}


def function_named(module, name):
    """The function of this package that stands for a name in PyTorch's files."""
    return FUNCTIONS[f"{module}.{name}"]


_NAMES = {key: GlobalName(*key.rsplit(".", 1)) for key in FUNCTIONS}


def layout_reduction(layout):
    """What a pickle says of a layout: function name and arguments."""
    name = "torch." + str(layout).rpartition(".")[2]
    return _NAMES["torch.serialization._get_layout"], (name,)


def _attributes(tensor):
    """What Python keeps of a tensor: a dict, a pair of it and one of slots, or None."""
    # Before Python 3.11 only classes that define it have __getstate__.
    get = getattr(tensor, "__getstate__", None)
    return (getattr(tensor, "__dict__", None) if get is None else get()) or None


def _sparse_reduction(t):
    if t.layout == facula.sparse_coo:
        data = (t._indices(), t._values(), t.size(), t.is_coalesced())
    elif t.layout in (facula.sparse_csr, facula.sparse_bsr):
        data = (t.crow_indices(), t.col_indices(), t.values(), t.size())
    else:
        data = (t.ccol_indices(), t.row_indices(), t.values(), t.size())
    return _NAMES["torch._utils._rebuild_sparse_tensor"], (t.layout, data)


def _quantized_reduction(t):
    scheme = t.qscheme()
    if scheme is facula.per_tensor_affine:
        quantizer = (scheme, t.q_scale(), t.q_zero_point())
    else:
        parameters = (t.q_per_channel_scales(), t.q_per_channel_zero_points())
        quantizer = (scheme, *parameters, t.q_per_channel_axis())
    storage = _core.typed(t.untyped_storage(), t.dtype)
    place = (t.storage_offset(), tuple(t.size()), t.stride())
    args = (storage, *place, quantizer, t.requires_grad, OrderedDict())
    return _NAMES["torch._utils._rebuild_qtensor"], args


def _is_wrapper(t):
    is_dispatched = getattr(type(t), "__torch_dispatch__", None) is not None
    return is_dispatched and not t.is_meta and t.numel() > 0 and t.data_ptr() == 0


def _wrapper_reduction(t):
    place = (t.storage_offset(), t.layout, t.device)
    args = (type(t), t.dtype, tuple(t.size()), t.stride(), *place, t.requires_grad)
    return _NAMES["torch._utils._rebuild_wrapper_subclass"], args


def _plain_reduction(t):
    if _is_wrapper(t):
        return _wrapper_reduction(t)
    if t.layout in _layouts.sparse_layouts():
        return _sparse_reduction(t)
    if (reduced := _layouts.reduction(t)) is not None:
        return _NAMES["torch._layouts.rebuild"], reduced[1]
    if t.is_quantized:
        return _quantized_reduction(t)
    if t.device.type == "meta":
        args = (t.dtype, tuple(t.size()), t.stride(), t.requires_grad)
        return _NAMES["torch._utils._rebuild_meta_tensor_no_storage"], args
    name = _core.dtype_name(t.dtype)
    bits = {"conj": t.is_conj(), "neg": t.is_neg()}
    metadata = {bit: True for bit, is_set in bits.items() if is_set}
    storage = _core.typed(t.untyped_storage(), t.dtype)
    hooks = OrderedDict()
    args = (t.storage_offset(), tuple(t.size()), t.stride(), t.requires_grad, hooks)
    tail = (metadata,) if metadata else ()
    if name in _core.STORAGE_NAMES:
        return _NAMES["torch._utils._rebuild_tensor_v2"], (storage, *args, *tail)
    base = t.untyped_storage()
    return _NAMES["torch._utils._rebuild_tensor_v3"], (base, *args, t.dtype, *tail)


def tensor_reduction(t):
    """What a pickle says of a tensor: function name and arguments."""
    from facula.nn.parameter import Parameter

    state = _attributes(t)
    if isinstance(t, Parameter):
        args = (t.data, t.requires_grad, OrderedDict())
        if not state:
            return _NAMES["torch._utils._rebuild_parameter"], args
        return _NAMES["torch._utils._rebuild_parameter_with_state"], (*args, state)
    with facula._C.DisableTorchFunctionSubclass():
        function, args = _plain_reduction(t)
    if type(t) is facula.Tensor and state is None:
        return function, args
    typed_args = (function, type(t), args, state)
    return _NAMES["torch._tensor._rebuild_from_type_v2"], typed_args
