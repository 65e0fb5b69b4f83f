"""Storages: the bytes behind tensors, and the same as elements of a dtype.

Names that begin with one underscore and end as a method of UntypedStorage does are those methods:
the core imports this file at the first call of one.
"""

from __future__ import annotations

import sys

import facula
from facula import _C
from facula._C import UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]

_CLASS_NAMES = {
    facula.float64: "DoubleStorage",
    facula.float32: "FloatStorage",
    facula.float16: "HalfStorage",
    facula.int64: "LongStorage",
    facula.int32: "IntStorage",
    facula.int16: "ShortStorage",
    facula.int8: "CharStorage",
    facula.uint8: "ByteStorage",
    facula.bool: "BoolStorage",
    facula.bfloat16: "BFloat16Storage",
    facula.complex128: "ComplexDoubleStorage",
    facula.complex64: "ComplexFloatStorage",
    facula.qint8: "QInt8Storage",
    facula.quint8: "QUInt8Storage",
    facula.qint32: "QInt32Storage",
    facula.quint4x2: "QUInt4x2Storage",
    facula.quint2x4: "QUInt2x4Storage",
}
# The dtype that the elements of a storage are read as: quantized ones as their integers.
_READ_AS = {
    facula.qint8: facula.int8,
    facula.quint8: facula.uint8,
    facula.qint32: facula.int32,
    facula.quint4x2: facula.uint8,
    facula.quint2x4: facula.uint8,
}
_DTYPES = {name: dtype for dtype, name in _CLASS_NAMES.items()}
# The methods of both kinds of storage that cast: name -> dtype.
_CASTS = {
    "float": facula.float32,
    "double": facula.float64,
    "half": facula.float16,
    "bfloat16": facula.bfloat16,
    "long": facula.int64,
    "int": facula.int32,
    "short": facula.int16,
    "char": facula.int8,
    "byte": facula.uint8,
    "bool": facula.bool,
    "complex_double": facula.complex128,
    "complex_float": facula.complex64,
    "float8_e4m3fn": facula.float8_e4m3fn,
    "float8_e5m2": facula.float8_e5m2,
    "float8_e4m3fnuz": facula.float8_e4m3fnuz,
    "float8_e5m2fnuz": facula.float8_e5m2fnuz,
}


def _elements(untyped, dtype):
    """The storage as a tensor of one dimension, over the same memory."""
    count = untyped.nbytes() // dtype.itemsize
    read_as = _READ_AS.get(dtype, dtype)
    return _C._tensor_from_storage(untyped, read_as, 0, (count,), (1,), False)


def _lines(values, kind, dtype, device, size):
    shown = f"dtype={dtype}, device={device}" if dtype else f"device={device}"
    rows = " " + "\n ".join(map(str, values)) + "\n"
    if device.type == "meta":
        rows = "...\n"
    return f"{rows}[torch.storage.{kind}({shown}) of size {size}]"


# --- methods of UntypedStorage


def _text(self):
    values = self if self.device.type != "meta" else ()
    return _lines(values, "UntypedStorage", None, self.device, len(self))


def _untyped(self):
    """This storage."""
    return self


def _new(self):
    """An empty storage on the same device."""
    return UntypedStorage(0, device=self.device)


def _type(self, dtype=None, non_blocking=False):
    """The name of the class; or a typed storage with the bytes as elements of another one."""
    if dtype is None:
        return "torch.storage.UntypedStorage"
    return _of_class(dtype).copy_(self, non_blocking)


def _get_device(self):
    """The index of the device; None on the CPU."""
    return self.device.index


def _moved(self, device, non_blocking=False):
    device = facula.device(device)
    if device == self.device:
        return self
    return _elements(self, facula.uint8).to(device, non_blocking=non_blocking).untyped_storage()


def _to(self, *, device, non_blocking=False):
    """This storage if it is on the device, else a copy there."""
    return _moved(self, device, non_blocking)


def _cpu(self):
    """This storage if it is on the CPU, else a copy there."""
    return _moved(self, "cpu")


def _cuda(self, device=None, non_blocking=False):
    """This storage if it is on the CUDA device, the current one for None, else a copy there."""
    return _moved(
        self, facula.device("cuda", device) if isinstance(device, int) else device or "cuda"
    )


def _hpu(self, device=None, non_blocking=False):
    """This storage on an HPU device."""
    return _moved(self, device or "hpu")


def _mps(self):
    """This storage on the MPS device."""
    return _moved(self, "mps")


def _pin_memory(self, device=None):
    """A copy in page-locked memory."""
    return _elements(self, facula.uint8).pin_memory().untyped_storage()


def __get_filename(self):
    return self.filename


def __byteswap(self, dtype):
    _byteswap(self, dtype)


def _descriptor(file):
    return file if isinstance(file, int) else file.fileno()


def __write_file(self, f, is_real_file, save_size, element_size):
    """Write the number of elements, if `save_size`, and the bytes to a file."""
    import os
    import struct

    head = struct.pack("<q", len(self) // element_size) if save_size else b""
    if not is_real_file:
        f.write(head)
        f.write(memoryview(self))
        return
    for part in (head, memoryview(self)):
        while part:
            part = part[os.write(_descriptor(f), part) :]


def __set_from_file(self, f, offset, is_real_file, element_size):
    """Fill this storage with what `__write_file` wrote; seeks to `offset` unless it is None."""
    import struct

    if offset is not None:
        f.seek(offset)
    head = f.read(8)
    if len(head) != 8 or struct.unpack("<q", head)[0] * element_size != len(self):
        raise RuntimeError(
            f"_set_from_file(): expected {len(self) // element_size} elements in the file; got "
            f"{struct.unpack('<q', head)[0] if len(head) == 8 else 'none'}"
        )
    data = f.read(len(self))
    if len(data) != len(self):
        raise RuntimeError(f"unexpected EOF, expected {len(self) - len(data)} more bytes")
    memoryview(self)[:] = data
    return self


def _is_shared(self):
    """Whether other processes can share the memory."""
    return self.filename is not None or _C._storage_is_shared(self)


def _share_memory_(self):
    """Move the bytes to memory that other processes can share; tensors over them follow."""
    if self.is_shared() or self.is_cuda:
        return self
    if self.device.type != "cpu":
        raise RuntimeError(
            f"share_memory_(): processes share memory of the CPU; got a storage on {self.device}"
        )
    from facula.multiprocessing import _name_prefix

    _C._share_storage(self, _name_prefix())
    return self


def __new_shared(cls, size, *, device="cpu"):
    """A storage of zeros in memory that other processes can share."""
    if facula.device(device).type != "cpu":
        raise RuntimeError(f"_new_shared(): processes share memory of the CPU; got {device}")
    from facula.multiprocessing import _name_prefix

    return _C._new_shared_storage(size, _name_prefix())


def _byteswap(self, dtype):
    """Reverse the bytes of each element of `dtype`, in place."""
    width = dtype.itemsize // (2 if dtype.is_complex else 1)
    rows = _elements(self, facula.uint8)
    rows = rows[: rows.numel() // width * width].view(-1, width)
    rows.copy_(rows.flip(1))


def _no_cast(name):
    def cast(self):
        raise NotImplementedError(f"{name}(): no dtype {name} in this version")

    return cast


def _cast_of(dtype):
    def cast(self):
        values = _elements(self, facula.uint8).to(dtype)
        return _wrapped(values.untyped_storage(), dtype)

    cast.__doc__ = f"A typed storage with the bytes as elements of {dtype}."
    return cast


globals().update(
    {f"_{name}": _cast_of(dtype) if dtype else _no_cast(name) for name, dtype in _CASTS.items()}
)


def ___copy__(self):
    return self.clone()


def ___deepcopy__(self, memo):
    # Tensors over one storage, and the storage itself, are over one storage in the copy, too.
    key = ("storage", self._cdata)
    if key not in memo:
        memo[key] = self.clone()
    return memo[key]


def _from_buffer(cls, buffer, byte_order=None, count=-1, offset=0, *, dtype=None):
    """A storage with a copy of elements of a buffer, whose bytes lie in `byte_order`."""
    if dtype is None:
        raise RuntimeError("from_buffer(): argument 'dtype' cannot be None")
    if dtype in (facula.uint8, facula.int8):
        byte_order = "native"
    if byte_order is None:
        raise RuntimeError(
            "from_buffer(): function missing required argument 'byte_order': one of 'native', "
            "'little' and 'big'"
        )
    if byte_order not in (None, "native", "little", "big"):
        raise ValueError(
            f"from_buffer(): byte_order must be 'native', 'little' or 'big'; got {byte_order!r}"
        )
    data = memoryview(buffer).cast("B")
    if not 0 <= offset <= len(data) or (offset == len(data) and len(data) > 0):
        raise ValueError(
            f"offset must be non-negative and no greater than buffer length ({len(data)}); "
            f"got {offset}"
        )
    if count < 0:
        if (len(data) - offset) % dtype.itemsize:
            raise ValueError(
                f"buffer size ({len(data)}) must be a multiple of element size ({dtype.itemsize})"
            )
        count = (len(data) - offset) // dtype.itemsize
    end = offset + count * dtype.itemsize
    if end > len(data):
        raise ValueError(
            f"buffer has only {(len(data) - offset) // dtype.itemsize} elements after offset "
            f"{offset}, but specified a size of {count}"
        )
    made = UntypedStorage(end - offset)
    memoryview(made)[:] = data[offset:end]
    if byte_order in ("little", "big") and byte_order != sys.byteorder:
        made.byteswap(dtype)
    return made


def _mapped_file(filename, shared, size):
    """A buffer over the first bytes of a file."""
    import mmap
    import os

    how = "read-write" if shared else "read-only"
    flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
    try:
        handle = os.open(filename, flags, 0o600)
    except OSError as error:
        raise RuntimeError(
            f"unable to open file <{filename}> in {how} mode: {error.strerror} ({error.errno})"
        ) from None
    try:
        there = os.fstat(handle).st_size
        if size > there:
            if not shared:
                raise RuntimeError(
                    f"file <{filename}> size <{there}> is smaller than the required mapping size "
                    f"<{size}>"
                )
            os.ftruncate(handle, size)
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        return mmap.mmap(handle, size, access=access)
    finally:
        os.close(handle)


def _from_file(cls, filename, shared=False, nbytes=0):
    """A storage over a file: its bytes are the file's.

    Args:
        filename (str): the file; made, or made longer, where `shared` asks for it.
        shared (bool): writes go to the file; otherwise they stay with this storage.
        nbytes (int): how many of the file's first bytes.
    """
    if nbytes < 0:
        raise RuntimeError(f"from_file(): expected a size that is not negative; got {nbytes}")
    if nbytes == 0:
        return UntypedStorage(0)
    storage = _C._storage_from_bytes(_mapped_file(filename, shared, nbytes))
    if shared:
        storage._filename = filename
    return storage


def from_file(
    filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False
):
    """A tensor of one dimension over the first elements of a file.

    Args:
        filename (str): the file; made, or made longer, where `shared` asks for it.
        shared (bool): writes go to the file; otherwise they stay with this process.
        size (int): how many elements.
        dtype (facula.dtype): of the elements; the default dtype where None.
    """
    if device is not None and facula.device(device).type != "cpu":
        raise NotImplementedError(f"from_file(): files are mapped on the CPU; got {device}")
    if pin_memory:
        raise RuntimeError("tensors constructed from a file cannot be pinned")
    dtype = facula.get_default_dtype() if dtype is None else dtype
    return _elements(
        UntypedStorage.from_file(filename, bool(shared), (size or 0) * dtype.itemsize), dtype
    )


# --- typed storages


class _StorageBaseMeta(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, UntypedStorage)

    def __subclasscheck__(cls, kind):
        return kind is cls or (isinstance(kind, type) and issubclass(kind, UntypedStorage))


class _StorageBase(metaclass=_StorageBaseMeta):
    """What storages of bytes are instances of."""


def _not_these(where, args, dtype, device, wrapped):
    given = [type(a).__name__ for a in args]
    for name, value in (("dtype", dtype), ("device", device), ("wrap_storage", wrapped)):
        if value is not None:
            given.append(f"{name}={value if name != 'wrap_storage' else type(value).__name__}")
    return (
        f"{where} received an invalid combination of arguments. Expected one of:\n"
        " * (*, device, dtype)\n * (int size, *, device, dtype)\n"
        " * (Sequence data, *, device, dtype)\n * (*, UntypedStorage wrap_storage, dtype)\n"
        f"got ({', '.join(given)})"
    )


class TypedStorage:
    """An untyped storage seen as elements of one dtype.

    TypedStorage(size), TypedStorage(data) with elements, TypedStorage() or
    TypedStorage(wrap_storage=untyped, dtype=dtype).

    Args:
        wrap_storage (UntypedStorage): is shared; comes with a dtype and nothing else.
        dtype (facula.dtype): of the elements; the default dtype where None.
        device (facula.device): of the memory.
    """

    is_sparse = False
    is_hpu = False

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        if dtype is not None and not isinstance(dtype, facula.dtype):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        if wrap_storage is None:
            self.dtype = facula.get_default_dtype() if dtype is None else dtype
            self._untyped_storage = _made(self.dtype, device, args, "TypedStorage.__init__")
            return
        complaint = _not_these("TypedStorage.__init__", args, dtype, device, wrap_storage)
        if not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(complaint)
        if args or dtype is None or device is not None:
            raise RuntimeError(complaint)
        self.dtype = dtype
        self._untyped_storage = wrap_storage

    @property
    def _dtype(self):
        return self.dtype

    def untyped(self):
        """The bytes as an UntypedStorage."""
        return self._untyped_storage

    @property
    def device(self):
        return self._untyped_storage.device

    @property
    def is_cuda(self):
        return self._untyped_storage.is_cuda

    @property
    def filename(self):
        """The file that is mapped and shared, or None."""
        return self._untyped_storage.filename

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    def get_device(self):
        """The index of the device; None on the CPU."""
        return self._untyped_storage.get_device()

    def size(self):
        """The number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = size
    _size = size

    def nbytes(self):
        """The number of bytes."""
        return self._untyped_storage.nbytes()

    _nbytes = nbytes

    def element_size(self):
        """Bytes of an element."""
        return self.dtype.itemsize

    _element_size = element_size

    def data_ptr(self):
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    _data_ptr = data_ptr

    def resizable(self):
        """Whether resize_ may change the size."""
        return self._untyped_storage.resizable()

    def resize_(self, size):
        """Change the number of elements, keeping the leading ones."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    _resize_ = resize_

    def _tensor(self):
        return _elements(self._untyped_storage, self.dtype)

    def _like(self, untyped):
        return _wrapped(untyped, self.dtype)

    def tolist(self):
        """The elements as a list of Python numbers."""
        return self._tensor().tolist()

    def _position(self, index):
        if isinstance(index, bool):
            raise TypeError(f"can't index a {type(self)} with {type(index)}")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        size = self.size()
        if not -size <= index < size:
            raise IndexError(f"index {index} out of range for storage of size {size}")
        return index % size

    def __getitem__(self, index):
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._tensor()[self._position(index)].item()

    def __setitem__(self, index, value):
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        self._tensor()[index] = value

    def __iter__(self):
        return (self[i] for i in range(self.size()))

    def fill_(self, value):
        """Set every element."""
        self._tensor().fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        """Copy the bytes of a storage of as many."""
        if isinstance(source, TypedStorage):
            source = source._untyped_storage
        self._untyped_storage.copy_(source, bool(non_blocking))
        return self

    def clone(self):
        """A storage of its own with the same elements."""
        return self._like(self._untyped_storage.clone())

    def cpu(self):
        """This storage on the CPU."""
        return self._like(self._untyped_storage.cpu())

    def to(self, *, device, non_blocking=False):
        """This storage on a device: a copy where it is on another one."""
        return self._like(self._untyped_storage.to(device=device, non_blocking=non_blocking))

    def cuda(self, device=None, non_blocking=False):
        """This storage on a CUDA device, the current one for None."""
        return self._like(self._untyped_storage.cuda(device, non_blocking))

    def hpu(self, device=None, non_blocking=False):
        """This storage on an HPU device."""
        return self._like(self._untyped_storage.hpu(device, non_blocking))

    def type(self, dtype=None, non_blocking=False):
        """The name of the class; or the bytes as elements of another one."""
        if dtype is None:
            kind = _CLASS_NAMES.get(self.dtype)
            is_named = kind is not None and self.device.type != "meta"
            return f"torch.{kind}" if is_named else "torch.storage.TypedStorage"
        return _of_class(dtype).copy_(self, non_blocking)

    def pickle_storage_type(self):
        """The name that checkpoints give this storage's class."""
        return _class_name(self.dtype)

    _pickle_storage_type = pickle_storage_type

    def is_shared(self):
        """Whether other processes share the memory."""
        return self._untyped_storage.is_shared()

    _is_shared = is_shared

    def is_pinned(self, device=None):
        """Whether the memory is page-locked."""
        return self._untyped_storage.is_pinned()

    def pin_memory(self, device=None):
        """A copy in page-locked memory."""
        return self._like(self._untyped_storage.pin_memory(device))

    def _write_file(self, f, is_real_file, save_size, element_size):
        self._untyped_storage._write_file(f, is_real_file, save_size, element_size)

    def _set_from_file(self, f, offset, is_real_file, element_size):
        self._untyped_storage._set_from_file(f, offset, is_real_file, element_size)
        return self

    def _maybe_wrap_index(self, index, is_stop=False):
        if index is None:
            return self.size() if is_stop else 0
        return self._position(index)

    def _getitem(self, index):
        return self[index]

    def _setitem(self, index, value):
        self[index] = value

    def _get_legacy_storage_class(self):
        return _CLASSES.get(_CLASS_NAMES.get(self.dtype))

    def share_memory_(self):
        """Move the memory to where other processes can share it."""
        self._untyped_storage.share_memory_()
        return self

    _share_memory_ = share_memory_

    @classmethod
    def _new_shared(cls, size, *, device="cpu"):
        """A storage of `size` elements in memory that other processes can share."""
        dtype = getattr(cls, "dtype", None) or facula.get_default_dtype()
        untyped = UntypedStorage._new_shared(size * dtype.itemsize, device=device)
        return _wrapped(untyped, dtype)

    @classmethod
    def from_buffer(cls, *args, **kwargs):
        """A storage of the class's dtype with a copy of elements of a buffer."""
        dtype = getattr(cls, "dtype", None)
        if dtype is not None and "dtype" in kwargs:
            raise RuntimeError(f"{cls.__name__}.from_buffer(): its dtype is {dtype}; got another")
        if dtype is None:
            dtype = kwargs.pop("dtype", facula.get_default_dtype())
        return _wrapped(UntypedStorage.from_buffer(*args, dtype=dtype, **kwargs), dtype)

    @classmethod
    def from_file(cls, filename, shared, size):
        """A storage over the first `size` elements of a file; `shared`: writes go to it."""
        if cls is TypedStorage:
            raise RuntimeError("from_file can only be called on derived classes")
        return _wrapped(
            UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize), cls.dtype
        )

    def __str__(self):
        values = self.tolist() if self.device.type != "meta" else ()
        return _lines(values, "TypedStorage", self.dtype, self.device, self.size())

    __repr__ = __str__

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        from copy import deepcopy

        return self._like(deepcopy(self._untyped_storage, memo))

    _deepcopy = __deepcopy__

    def __reduce__(self):
        return _wrapped, (self._untyped_storage, self.dtype)

    def __sizeof__(self):
        return super().__sizeof__() + self.nbytes()

    def __eq__(self, other):
        if not isinstance(other, TypedStorage):
            return False
        is_same = self._cdata == other._cdata
        return is_same or (self.device.type != "meta" and self.data_ptr() == other.data_ptr())

    def __hash__(self):
        return hash(self._cdata)


def _typed_cast_of(dtype):
    def cast(self):
        if self.dtype == dtype:
            return self
        return _wrapped(self._tensor().to(dtype).untyped_storage(), dtype)

    cast.__doc__ = f"The elements as elements of {dtype}."
    return cast


for _name, _dtype in _CASTS.items():
    setattr(TypedStorage, _name, _typed_cast_of(_dtype) if _dtype else _no_cast(_name))


def _wrapped(untyped, dtype):
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


def _class_name(dtype):
    if dtype not in _CLASS_NAMES:
        raise KeyError(dtype)
    return _CLASS_NAMES[dtype]


def _made(dtype, device, args, where):
    """The memory of a new typed storage: of a size, or of elements."""
    if len(args) > 1:
        raise RuntimeError(_not_these(where, args, dtype, device, None))
    if not args:
        return UntypedStorage(0, device=device)
    if isinstance(args[0], int):
        return UntypedStorage(args[0] * dtype.itemsize, device=device)
    from collections.abc import Sequence

    if isinstance(args[0], (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(args[0]).__name__}'")
    if not isinstance(args[0], Sequence):
        raise TypeError(_not_these(where, args, dtype, device, None))
    return facula.tensor(list(args[0]), dtype=dtype, device=device).untyped_storage()


class _LegacyStorageMeta(type):
    """The class of FloatStorage and its like: typed storages of the dtype are instances."""

    def __instancecheck__(cls, instance):
        is_typed = type.__instancecheck__(TypedStorage, instance)
        return is_typed and instance.dtype == getattr(cls, "dtype", None)

    def __call__(cls, *args, wrap_storage=None, **others):
        where = f"{cls}.__new__"
        unknown = set(others) - {"dtype", "device"}
        if unknown:
            raise TypeError(f"{where}() got an unexpected keyword argument {min(unknown)!r}")
        if wrap_storage is None and not others:
            return _wrapped(_made(cls.dtype, None, args, where), cls.dtype)
        complaint = _not_these(where, args, others.get("dtype"), others.get("device"), wrap_storage)
        if args or others:
            raise RuntimeError(complaint)
        if not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(complaint)
        return _wrapped(wrap_storage, cls.dtype)

    def __repr__(cls):
        return f"<class 'torch.{cls.__name__}'>"


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """What FloatStorage and its like derive from; a call gives a TypedStorage."""


def _legacy(name, dtype):
    doc = f"Makes typed storages of {dtype}, from a size or from elements."
    return _LegacyStorageMeta(
        name, (_LegacyStorage,), {"dtype": dtype, "__module__": facula.__name__, "__doc__": doc}
    )


_CLASSES = {name: _legacy(name, dtype) for name, dtype in _DTYPES.items()}
globals().update(_CLASSES)


def _of_class(wanted):
    """An empty typed storage of a class, given as such or by its name."""
    if not isinstance(wanted, (str, _LegacyStorageMeta)):
        raise AttributeError(f"type(): expected a storage class or its name; got {wanted!r}")
    name = wanted.rsplit(".", 1)[-1] if isinstance(wanted, str) else wanted.__name__
    if name not in _CLASSES:
        raise RuntimeError(f"Cannot find storage class {wanted!r}")
    return _CLASSES[name]()


def _load_from_bytes(data):
    """What pickles of PyTorch call for the bytes of a storage: a file in the old format."""
    import io

    return facula.load(io.BytesIO(data), weights_only=False)


def _isint(value):
    return isinstance(value, int)


def _dtype_to_storage_type_map():
    """From dtypes to the names of their storage classes; returns a dict."""
    return dict(_CLASS_NAMES)


def _storage_type_to_dtype_map():
    """From names of storage classes to their dtypes; returns a dict."""
    return dict(_DTYPES)


def _get_dtype_from_pickle_storage_type(name):
    if name not in _DTYPES:
        raise KeyError(f'pickle storage type "{name}" is not recognized')
    return _DTYPES[name]


def storage_type_of(tensor):
    """The class of typed storages of a tensor's dtype."""
    return _CLASSES[_class_name(tensor.dtype)]


def typed_storage_of(tensor):
    """The typed storage of a tensor."""
    return _wrapped(tensor.untyped_storage(), tensor.dtype)
