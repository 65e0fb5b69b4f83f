"""Typed constructors of old: `facula.LongTensor([1, 2])`, `facula.FloatTensor(2, 3)`."""

from __future__ import annotations

import facula

_Tensor = facula.Tensor


class _LegacyType(type):
    """The class of the constructors: instances are plain tensors of the dtype on the CPU."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, _Tensor) and instance.is_cpu and instance.dtype == cls.dtype

    def __call__(cls, *args, device=None):
        if device is not None and facula.device(device).type != "cpu":
            raise RuntimeError(
                f"legacy constructor expects device type: cpu but device type: "
                f"{facula.device(device).type} was passed"
            )
        if len(args) == 1 and not isinstance(args[0], (int, facula.Size)):
            return _from_data(cls, args[0])
        if len(args) == 1 and isinstance(args[0], facula.Size):
            args = args[0]
        if not all(isinstance(n, int) for n in args):
            raise TypeError(
                "new() received an invalid combination of arguments - got "
                f"({', '.join(type(n).__name__ for n in args)})"
            )
        return facula.empty(tuple(args) or (0,), dtype=cls.dtype, device="cpu")

    def __repr__(cls):
        return f"<class 'torch.{cls.__name__}'>"


def _from_data(cls, data):
    if isinstance(data, _Tensor):
        if not isinstance(data, cls):
            raise TypeError(
                f"{cls.__name__}(): expected a tensor of dtype {cls.dtype} on the CPU; "
                f"got {data.dtype} on {data.device}"
            )
        return data.detach().alias() if hasattr(data, "alias") else data.detach()
    if facula.is_storage(data):
        return facula.empty(0, dtype=cls.dtype).set_(data)
    if isinstance(data, (bool, float, complex)) or data is None:
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return facula.tensor(data, dtype=cls.dtype, device="cpu")


def _make(name, dtype):
    members = {
        "dtype": dtype,
        "is_cuda": False,
        "is_sparse": False,
        "__module__": "torch",
        "__doc__": f"Makes tensors of {dtype} on the CPU, from sizes or from data.",
    }
    return _LegacyType(name, (), members)


FloatTensor = _make("FloatTensor", facula.float32)
DoubleTensor = _make("DoubleTensor", facula.float64)
HalfTensor = _make("HalfTensor", facula.float16)
BFloat16Tensor = _make("BFloat16Tensor", facula.bfloat16)
ByteTensor = _make("ByteTensor", facula.uint8)
CharTensor = _make("CharTensor", facula.int8)
ShortTensor = _make("ShortTensor", facula.int16)
IntTensor = _make("IntTensor", facula.int32)
LongTensor = _make("LongTensor", facula.int64)
BoolTensor = _make("BoolTensor", facula.bool)
