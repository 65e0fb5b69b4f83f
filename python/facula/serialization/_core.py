"""What serialization needs of the C++ core, and the names that PyTorch's files give to types.

No other file of this package calls the core's storage functions.
"""

import facula
from facula import _C

STORAGE_DTYPES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
    "QInt8Storage": "qint8",
    "QUInt8Storage": "quint8",
    "QInt32Storage": "qint32",
    "QUInt4x2Storage": "quint4x2",
    "QUInt2x4Storage": "quint2x4",
}
STORAGE_NAMES = {dtype: storage for storage, dtype in STORAGE_DTYPES.items()}
# Those without a storage class of their own are saved over an untyped storage, with the dtype.
DTYPE_NAMES = frozenset(
    str(value).rpartition(".")[2] for value in vars(_C).values() if isinstance(value, _C.dtype)
)
MAX_DIMS = 64  # of any tensor


class StorageType:
    """Name of a storage class in a checkpoint, such as `FloatStorage`, and the dtype it means."""

    def __init__(self, name):
        self._name = name
        self._dtype = dtype_named(STORAGE_DTYPES.get(name, "uint8"))

    @property
    def dtype(self):
        return self._dtype

    def __str__(self):
        return f"StorageType(dtype={self.dtype})"


def dtype_named(name):
    """The dtype called `name`; raises NotImplementedError when this build has none."""
    dtype = getattr(facula, name, None)
    if dtype is None:
        raise NotImplementedError(f"load(): no dtype {name} in this version")
    return dtype


def dtype_name(dtype):
    """`float32` for facula.float32."""
    return str(dtype).rpartition(".")[2]


def untyped(storage):
    """The untyped storage of a typed or an untyped one."""
    inner = getattr(storage, "_untyped_storage", None)
    return storage if inner is None else inner


def typed(storage, dtype):
    """A TypedStorage over an untyped storage."""
    return facula.storage.TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def typed_class():
    """The class of typed storages, which is loaded when first asked for."""
    return facula.storage.TypedStorage


def is_storage(obj):
    return isinstance(obj, (facula.UntypedStorage, facula.storage.TypedStorage))


def storage_identity(storage):
    """A number that is the same for all Python objects of one storage, while it lives."""
    return getattr(storage, "_cdata", None) or id(storage)


def new_cpu_storage(nbytes):
    """An untyped CPU storage of `nbytes` zero bytes."""
    return uninitialized_storage(nbytes).fill_(0)


def uninitialized_storage(nbytes):
    """An untyped CPU storage of `nbytes` bytes, whose values are to be set."""
    return facula.UntypedStorage(nbytes, device="cpu")


def crc32(data, before=0):
    """The checksum of bytes that follow others with the checksum `before`, as zip files have it."""
    return facula._C._crc32(data, before)


def storage_over(buffer):
    """An untyped CPU storage over a writable buffer, which it keeps alive; nothing is copied."""
    return facula._C._storage_from_bytes(buffer)


def part_of(storage, begin, end):
    """The bytes from `begin` to `end` of an untyped storage, as a storage over the same memory."""
    if storage.device.type == "meta":
        return facula.UntypedStorage(end - begin, device="meta")
    return storage[begin:end]


def storage_bytes(storage):
    """The bytes of an untyped storage as a memoryview; those of a device are copied first."""
    if storage.device.type != "cpu":
        storage = storage.cpu()
    return facula._C._storage_bytes(storage)


def _check_geometry(available, dtype, offset, size, stride):
    def fail(what):
        raise RuntimeError(
            f"load(): a tensor with size {size}, stride {stride}, storage_offset {offset} and "
            f"dtype {dtype} {what}"
        )

    if len(size) > MAX_DIMS or len(stride) > MAX_DIMS:
        raise RuntimeError(
            f"load(): a tensor of {len(size)} dimensions; at most {MAX_DIMS} are read"
        )
    ints = (offset, *size, *stride)
    if any(type(value) is not int for value in ints):
        raise RuntimeError("load(): the geometry of a tensor is not of integers")
    if len(size) != len(stride):
        fail("needs as many strides as sizes")
    if min(ints) < 0 or max(ints) > 2**63 - 1:
        fail("has a number out of range")
    count = 1
    for extent in size:
        count *= extent
    if count > (2**63 - 1) // dtype.itemsize:
        fail("has too many elements")
    last = offset
    for extent, step in zip(size, stride, strict=True):
        last += (extent - 1) * step
    if count and (last + 1) * dtype.itemsize > available:
        fail(f"does not fit into its storage of {available} bytes")


def tensor_over(storage, dtype, offset, size, stride, requires_grad):
    """A tensor over an untyped storage; raises RuntimeError when it would reach outside."""
    size, stride = tuple(size), tuple(stride)
    _check_geometry(storage.nbytes(), dtype, offset, size, stride)
    if storage.device.type == "meta":
        return meta_tensor(dtype, size, stride, requires_grad)
    return facula._C._tensor_from_storage(storage, dtype, offset, size, stride, requires_grad)


def meta_tensor(dtype, size, stride, requires_grad):
    """A tensor without values, on the meta device."""
    _check_geometry(2**63 - 1, dtype, 0, tuple(size), tuple(stride))
    return facula.empty_strided(
        size, stride, dtype=dtype, device="meta", requires_grad=requires_grad
    )
