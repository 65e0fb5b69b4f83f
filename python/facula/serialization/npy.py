"""NumPy's files: `.npy` of one array and `.npz` of several, read and written without NumPy.

With NumPy, `facula.from_numpy(numpy.load(path))` reads the same; neither runs anything of a file.
"""

import math
import re
import struct
import sys

import facula

from . import _core
from ._container import ArchiveReader
from ._files import opened_to_read, opened_to_write, read_into
from .safetensors import _contiguous_stride

_MAGIC = b"\x93NUMPY"
_MAX_HEADER = 1 << 16
_KINDS = {
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "c8": "complex64",
    "c16": "complex128",
    "i1": "int8",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
    "u1": "uint8",
    "u2": "uint16",
    "u4": "uint32",
    "u8": "uint64",
    "b1": "bool",
}
_CODES = {name: code for code, name in _KINDS.items()}
_ENTRY = re.compile(
    r"\s*'(descr|fortran_order|shape)'\s*:\s*(?:'([^']*)'|(True|False)|\(([\d\s,L]*)\))\s*(,|$)"
)
_ENTRY_GROUPS = {"descr": 2, "fortran_order": 3, "shape": 4}


def _refuse(what):
    return ValueError(f"load_npy(): not a whole .npy file: {what}")


def _header_of(tensor):
    name = _core.dtype_name(tensor.dtype)
    if name not in _CODES:
        raise ValueError(f"save_npy(): the format has no {tensor.dtype}")
    order = "|" if tensor.dtype.itemsize == 1 else "<" if sys.byteorder == "little" else ">"
    shape = ", ".join(map(str, tensor.shape)) + ("," if tensor.dim() == 1 else "")
    text = f"{{'descr': '{order}{_CODES[name]}', 'fortran_order': False, 'shape': ({shape}), }}"
    start = len(_MAGIC) + 4
    padding = -(start + len(text) + 1) % 64
    text = text.encode() + b" " * padding + b"\n"
    return _MAGIC + b"\1\0" + struct.pack("<H", len(text)) + text


def _parts(tensor):
    """The header of a tensor's file, and its bytes."""
    if not isinstance(tensor, facula.Tensor) or tensor.layout != facula.strided:
        raise ValueError(f"save_npy(): expected a dense tensor; got {type(tensor).__name__}")
    header = _header_of(tensor)
    tensor = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    start = tensor.storage_offset() * tensor.dtype.itemsize
    end = start + tensor.numel() * tensor.dtype.itemsize
    return header, _core.storage_bytes(tensor.untyped_storage())[start:end]


def save_npy(tensor, filename):
    """Writes a tensor as `numpy.save` writes an array.

    Args:
        tensor (Tensor): dense, of any device.
        filename: a path, or a file object of bytes.

    Raises:
        ValueError: the tensor is not dense, or of a dtype that NumPy has not.

    Example:
        >>> from facula.serialization.npy import load_npy, save_npy
        >>> save_npy(facula.ones(2), "ones.npy")
        >>> load_npy("ones.npy")
        tensor([1., 1.])
    """
    header, data = _parts(tensor)
    with opened_to_write(filename) as write:
        write(header)
        write(data)


def save_npz(tensors, filename, compress=False):
    """Writes a dict of tensors as `numpy.savez` writes arrays.

    Args:
        tensors (dict): from name to a dense tensor.
        filename: a path, or a file object of bytes.
        compress (bool): deflate them, as `numpy.savez_compressed`.

    Raises:
        ValueError: a value is not dense, or of a dtype that NumPy has not.

    Example:
        >>> from facula.serialization.npy import load_npz, save_npz
        >>> save_npz({"a": facula.ones(2)}, "arrays.npz")
        >>> load_npz("arrays.npz")
        {'a': tensor([1., 1.])}
    """
    import zipfile

    files = {f"{name}.npy": _parts(tensor) for name, tensor in tensors.items()}
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with opened_to_write(filename) as write:
        with zipfile.ZipFile(_WriteOnly(write), "w", method) as archive:
            for name, parts in files.items():
                with archive.open(name, "w", force_zip64=True) as file:
                    for part in parts:
                        file.write(part)


class _WriteOnly:
    """What zipfile needs of a file that cannot be written at two places."""

    def __init__(self, write):
        self._write = write

    def write(self, data):
        self._write(data)
        return len(data)

    def flush(self):
        """Whoever opened the file flushes it."""


def _fields_of(text):
    """descr, fortran_order and shape of a header, as texts."""
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        raise _refuse("the header is not a dict")
    text, at, fields = text[1:-1].strip(), 0, {}
    while at < len(text):
        found = _ENTRY.match(text, at)
        if found is None or found[1] in fields:
            raise _refuse(f"the header has {text[at : at + 40]!r}")
        fields[found[1]] = found[_ENTRY_GROUPS[found[1]]]
        at = found.end()
    if len(fields) != 3 or None in fields.values():
        raise _refuse("the header says not all of descr, fortran_order and shape")
    return fields["descr"], fields["fortran_order"] == "True", fields["shape"]


def _shape_of(text):
    words = [word.strip().rstrip("L") for word in text.split(",")]
    if words[-1] == "":
        words.pop()
    if len(words) > _core.MAX_DIMS:
        raise _refuse(f"{len(words)} dimensions; at most {_core.MAX_DIMS} are read")
    if not all(word.isdecimal() and len(word) < 20 for word in words):
        raise _refuse(f"the shape ({text[:80]}) is not of numbers")
    return tuple(map(int, words))


def _read_exactly(file, size, what):
    data = file.read(size)
    if len(data) != size:
        raise _refuse(f"{what} is cut off")
    return data


def _read_header(file):
    """dtype, whether bytes are to be swapped, whether columns come first, and shape."""
    head = _read_exactly(file, 8, "the header")
    if head[:6] != _MAGIC:
        raise _refuse("it does not begin as one")
    width = {1: "<H", 2: "<I", 3: "<I"}.get(head[6])
    if width is None:
        raise _refuse(f"version {head[6]}.{head[7]} is not known")
    (size,) = struct.unpack(width, _read_exactly(file, struct.calcsize(width), "the header"))
    if size > _MAX_HEADER:
        raise _refuse(f"a header of {size} bytes is too long")
    text = _read_exactly(file, size, "the header").decode("latin1")
    descr, is_fortran, shape = _fields_of(text)
    order, kind = descr[:1], descr[1:]
    if order not in ("<", ">", "|", "=") or kind not in _KINDS:
        raise _refuse(f"elements of {descr[:40]!r} are not numbers")
    dtype = _core.dtype_named(_KINDS[kind])
    swaps = order in "<>" and order != ("<" if sys.byteorder == "little" else ">")
    return dtype, swaps and dtype.itemsize > 1, is_fortran, _shape_of(shape)


def _read_array(file, length):
    """The array at the beginning of a file of `length` bytes."""
    dtype, swaps, is_fortran, shape = _read_header(file)
    size = math.prod(shape) * dtype.itemsize
    if size > length - file.tell():
        raise _refuse(f"{length - file.tell()} bytes are left for shape {shape} of {dtype}")
    data = bytearray(size)
    if read_into(file, data) != size:
        raise _refuse("the array is cut off")
    if swaps:
        from ._load import _number_size, _swapped

        data = _swapped(data, _number_size(dtype))
    stride = _contiguous_stride(shape[::-1])[::-1] if is_fortran else _contiguous_stride(shape)
    return _core.tensor_over(_core.storage_over(data), dtype, 0, shape, stride, False)


def load_npy(filename):
    """Reads a file that `numpy.save` or `save_npy` wrote.

    Args:
        filename: a path, or a seekable file object of bytes.

    Returns:
        Tensor: on the CPU; arrays stored by columns have the strides of such.

    Raises:
        ValueError: the file is damaged, or has elements that are no numbers.
    """
    with opened_to_read(filename) as file:
        length = file.seek(0, 2)
        file.seek(0)
        return _read_array(file, length)


class _NpzReader(ArchiveReader):
    """An archive without a folder around its records, and without a version."""

    @staticmethod
    def _folder_of(names):
        return ""

    def _check_version(self):
        pass


def load_npz(filename):
    """Reads a file that `numpy.savez`, `numpy.savez_compressed` or `save_npz` wrote.

    Args:
        filename: a path, or a seekable file object of bytes.

    Returns:
        dict: from name to Tensor.

    Raises:
        RuntimeError: the archive is damaged.
        ValueError: an array in it is damaged, or has elements that are no numbers.
    """
    import io

    tensors = {}
    with opened_to_read(filename) as file:
        archive = _NpzReader(file)
        for name in archive.names():
            data = archive.read(name)
            key = name[:-4] if name.endswith(".npy") else name
            tensors[key] = _read_array(io.BytesIO(data), len(data))
    return tensors
