"""The safetensors format: a JSON header and the bytes of tensors; nothing can be executed."""

import json
import struct

import facula

from . import _core
from ._files import opened_to_read, opened_to_write

_MAX_HEADER = 100_000_000
_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "C64": "complex64",
}
_CODES = {name: code for code, name in _DTYPES.items()}


def _contiguous_stride(shape):
    stride, step = [], 1
    for extent in reversed(shape):
        stride.append(step)
        step *= max(extent, 1)
    return tuple(reversed(stride))


def _check_entry(name, tensor):
    if not isinstance(tensor, facula.Tensor) or tensor.layout != facula.strided:
        raise ValueError(f"save_file(): expected a dense tensor for {name!r}; got {type(tensor)}")
    if _core.dtype_name(tensor.dtype) not in _CODES:
        raise ValueError(f"save_file(): the format has no {tensor.dtype}, as {name!r} is")


def _write_tensor(write, tensor):
    tensor = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    start = tensor.storage_offset() * tensor.dtype.itemsize
    size = tensor.numel() * tensor.dtype.itemsize
    write(_core.storage_bytes(tensor.untyped_storage())[start : start + size])


def save_file(tensors, filename, metadata=None):
    """Writes a dict of tensors to a file in the safetensors format.

    Args:
        tensors (dict): from name to a dense tensor of any device.
        filename: a path.
        metadata (dict): strings to strings, kept in the file.

    Raises:
        ValueError: a value is not a dense tensor of a dtype that the format has.

    Example:
        >>> save_file({"weight": facula.ones(2)}, "weights.safetensors")
    """
    header, at = {}, 0
    for name, tensor in tensors.items():
        _check_entry(name, tensor)
    if metadata is not None:
        if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
            raise ValueError("save_file(): expected metadata from strings to strings")
        header["__metadata__"] = dict(metadata)
    # Wide elements first, so that all stand at multiples of their size.
    order = sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    for name, tensor in order:
        size = tensor.numel() * tensor.dtype.itemsize
        code = _CODES[_core.dtype_name(tensor.dtype)]
        place = [at, at + size]
        header[name] = {"dtype": code, "shape": list(tensor.shape), "data_offsets": place}
        at += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with opened_to_write(filename) as write:
        write(struct.pack("<Q", len(text)))
        write(text)
        for _, tensor in order:
            _write_tensor(write, tensor)


def _refuse(what):
    return ValueError(f"load_file(): not a whole safetensors file: {what}")


def _read_header(file, length):
    head = file.read(8)
    if len(head) != 8:
        raise _refuse("it has no header length")
    (size,) = struct.unpack("<Q", head)
    if size > min(_MAX_HEADER, length - 8):
        raise _refuse(f"a header of {size} bytes is too long")
    try:
        header = json.loads(file.read(size).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _refuse(f"the header is not JSON ({error})") from error
    if not isinstance(header, dict):
        raise _refuse("the header is not a table")
    header.pop("__metadata__", None)
    return header, 8 + size


def _parse_entry(name, entry, available):
    try:
        dtype = _core.dtype_named(_DTYPES[entry["dtype"]])
        shape, (start, end) = entry["shape"], entry["data_offsets"]
    except (KeyError, TypeError, ValueError) as error:
        raise _refuse(f"entry {name!r} is malformed") from error
    if not isinstance(shape, list) or any(type(n) is not int for n in [*shape, start, end]):
        raise _refuse(f"entry {name!r} has numbers that are no integers")
    count = 1
    for extent in shape:
        count *= extent
    if min([*shape, start], default=0) < 0 or end > available:
        raise _refuse(f"entry {name!r} reaches outside the file")
    if end - start != count * dtype.itemsize:
        raise _refuse(f"entry {name!r} has {end - start} bytes for shape {shape} of {dtype}")
    return dtype, shape, start, end


def load_file(filename, device="cpu"):
    """Reads all tensors of a file in the safetensors format.

    Args:
        filename: a path, or a seekable file object of bytes.
        device: where the tensors go.

    Returns:
        dict: from name to tensor.

    Raises:
        ValueError: the file is damaged or hostile.
    """
    tensors = {}
    with opened_to_read(filename) as file:
        length = file.seek(0, 2)
        file.seek(0)
        header, base = _read_header(file, length)
        for name, entry in header.items():
            dtype, shape, start, end = _parse_entry(name, entry, length - base)
            file.seek(base + start)
            data = bytearray(file.read(end - start))
            if len(data) != end - start:
                raise _refuse(f"entry {name!r} is cut off")
            storage = _core.storage_over(data)
            stride = _contiguous_stride(shape)
            tensor = _core.tensor_over(storage, dtype, 0, shape, stride, False)
            tensors[name] = tensor if str(device) == "cpu" else tensor.to(device)
    return tensors
