"""Typed constructors and storages of CUDA: classes that nothing is an instance of."""

from __future__ import annotations

import facula


class _CudaType(type):
    def __instancecheck__(cls, instance):
        return bool(getattr(instance, "is_cuda", False)) and instance.dtype == cls.dtype

    def __call__(cls, *args, **kwargs):
        facula.cuda.init()
        raise NotImplementedError(f"cuda.{cls.__name__}: use facula.empty(..., device='cuda')")

    def __repr__(cls):
        return f"<class 'torch.cuda.{cls.__name__}'>"


_NAMES = {
    "BFloat16": facula.bfloat16,
    "Bool": facula.bool,
    "Byte": facula.uint8,
    "Char": facula.int8,
    "ComplexDouble": facula.complex128,
    "ComplexFloat": facula.complex64,
    "Double": facula.float64,
    "Float": facula.float32,
    "Half": facula.float16,
    "Int": facula.int32,
    "Long": facula.int64,
    "Short": facula.int16,
}


def _make(name, dtype):
    return _CudaType(name, (), {"dtype": dtype, "is_cuda": True, "__module__": "facula.cuda"})


for _name, _dtype in _NAMES.items():
    for _kind in ("Tensor", "Storage"):
        globals()[_name + _kind] = _make(_name + _kind, _dtype)
