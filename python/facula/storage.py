"""Storages as elements of a dtype."""

from __future__ import annotations

import facula
from facula._C import UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


class TypedStorage:
    """An untyped storage seen as elements of one dtype.

    Args:
        wrap_storage: UntypedStorage.
        dtype: facula.dtype of the elements.
    """

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        self.dtype = facula.get_default_dtype() if dtype is None else dtype
        if wrap_storage is None:
            count = args[0] if args else 0
            wrap_storage = UntypedStorage(count * self.dtype.itemsize)
        self._untyped_storage = wrap_storage

    def untyped(self):
        """The bytes as an UntypedStorage."""
        return self._untyped_storage

    @property
    def device(self):
        return self._untyped_storage.device

    @property
    def is_cuda(self):
        return False

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    def size(self):
        """The number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = size
    _size = size

    def nbytes(self):
        """The number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self):
        """Bytes of an element."""
        return self.dtype.itemsize

    def data_ptr(self):
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    def _tensor(self):
        return facula._C._tensor_from_storage(
            self._untyped_storage, self.dtype, 0, (self.size(),), (1,), False
        )

    def tolist(self):
        """The elements as a list of Python numbers."""
        return self._tensor().tolist()

    def __getitem__(self, index):
        values = self.tolist()[index]
        return values

    def __setitem__(self, index, value):
        self._tensor()[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def pickle_storage_type(self):
        """The name that checkpoints give this storage's class."""
        return _LEGACY_NAMES[self.dtype]

    def is_shared(self):
        """Whether other processes share the memory."""
        return False

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and self.data_ptr() == other.data_ptr()

    def __hash__(self):
        return hash(self._cdata)


_LEGACY_NAMES = {
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
}


def typed_storage_of(tensor):
    """The typed storage of a tensor."""
    return TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype)
