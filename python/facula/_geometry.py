"""Geometry that the class of a tensor answers through its `__torch_dispatch__`.

Tensors made with `dispatch_sizes_strides_policy`, `dispatch_device` or `dispatch_layout` ask here.
"""

from __future__ import annotations

import functools

import facula
from facula import _C

# Attribute or method of Tensor -> schema of the operator that its class is asked for.
_SCHEMAS = {
    "size": "aten::sym_size(Tensor self) -> SymInt[]",
    "stride": "aten::sym_stride(Tensor self) -> SymInt[]",
    "numel": "aten::sym_numel(Tensor self) -> SymInt",
    "storage_offset": "aten::sym_storage_offset(Tensor self) -> SymInt",
    "dim": "aten::dim(Tensor self) -> int",
    "is_contiguous": "aten::is_contiguous(Tensor self) -> bool",
    "is_contiguous_format": (
        "aten::is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool"
    ),
    "device": "prim::device(Tensor a) -> Device",
    "layout": "prim::layout(Tensor a) -> Layout",
}


def _no_list(question):
    def kernel(tensor):
        raise NotImplementedError(
            f"this operator is there to be compared with: answer with {question} "
            "of the inner tensor"
        )

    return kernel


_KERNELS = {
    "size": _no_list("size()"),
    "stride": _no_list("stride()"),
    "numel": lambda t: t.numel(),
    "storage_offset": lambda t: t.storage_offset(),
    "dim": lambda t: t.dim(),
    "is_contiguous": lambda t: t.is_contiguous(),
    "is_contiguous_format": lambda t, f: t.is_contiguous(memory_format=f),
    "device": lambda t: t.device,
    "layout": lambda t: t.layout,
}


@functools.cache
def _operator(question):
    overload = _C._library_define(_SCHEMAS[question])
    namespace, _, rest = overload.name().partition("::")
    name, _, word = rest.partition(".")
    _C._library_impl(namespace, name, word, _KERNELS[question], "CompositeExplicitAutograd")
    return overload


def _answer(tensor, question, *args):
    cls = type(tensor)
    result = cls.__torch_dispatch__(_operator(question), (cls,), (tensor, *args), {})
    if result is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for '{_operator(question)}'; all "
            "__torch_dispatch__ handlers returned NotImplemented"
        )
    return result


def _sizes(tensor):
    sizes = _answer(tensor, "size")
    return NotImplemented if sizes is None else facula.Size(sizes)


def _strides(tensor):
    strides = _answer(tensor, "stride")
    return NotImplemented if strides is None else tuple(strides)


def _chosen(values, args, kwargs):
    dim = args[0] if args else (kwargs or {}).get("dim")
    return values if dim is None or values is NotImplemented else values[dim]


def _contiguous(tensor, args, kwargs):
    given = args[0] if args else (kwargs or {}).get("memory_format", facula.contiguous_format)
    if given == facula.contiguous_format:
        return _answer(tensor, "is_contiguous")
    return _answer(tensor, "is_contiguous_format", given)


_QUESTIONS = {
    "shape": lambda t, args, kwargs: _sizes(t),
    "size": lambda t, args, kwargs: _chosen(_sizes(t), args, kwargs),
    "stride": lambda t, args, kwargs: _chosen(_strides(t), args, kwargs),
    "dim": lambda t, args, kwargs: _answer(t, "dim"),
    "ndim": lambda t, args, kwargs: _answer(t, "dim"),
    "numel": lambda t, args, kwargs: _answer(t, "numel"),
    "nbytes": lambda t, args, kwargs: _answer(t, "numel") * t.itemsize,
    "__len__": lambda t, args, kwargs: _sizes(t)[0],
    "storage_offset": lambda t, args, kwargs: _answer(t, "storage_offset"),
    "is_contiguous": _contiguous,
    "device": lambda t, args, kwargs: _answer(t, "device"),
    "layout": lambda t, args, kwargs: _answer(t, "layout"),
}


def ask(tensor, question, args, kwargs):
    """What the tensor's class says; NotImplemented when it leaves the question to facula."""
    answer = _QUESTIONS[question](tensor, args, kwargs)
    return NotImplemented if answer is None else answer
