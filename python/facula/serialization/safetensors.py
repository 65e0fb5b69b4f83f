"""The safetensors format: a JSON header and the bytes of tensors; nothing can be executed."""

import json
import math
import struct
from typing import NamedTuple

import facula

from . import _core
from ._files import opened_to_read, opened_to_write, read_into

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
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
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
    for name, tensor in tensors.items():
        _check_entry(name, tensor)
    shapes = {name: (tensor.dtype, tensor.shape) for name, tensor in tensors.items()}
    with opened_to_write(filename) as write:
        write_tensors(write, shapes, tensors.__getitem__, metadata)


def write_tensors(write, shapes, tensor_of, metadata=None):
    """Writes a file whose tensors come one after the other, so that one at a time is in memory.

    Args:
        write (callable): takes bytes.
        shapes (dict): from name to (dtype, shape).
        tensor_of (callable): the tensor of a name.
        metadata (dict): strings to strings, kept in the file.

    Raises:
        ValueError: metadata of other types; a dtype that the format lacks.
    """
    header, at = {}, 0
    if metadata is not None:
        if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
            raise ValueError("save_file(): expected metadata from strings to strings")
        header["__metadata__"] = dict(metadata)
    # Wide elements first, so that all stand at multiples of their size.
    order = sorted(shapes, key=lambda name: (-shapes[name][0].itemsize, name))
    for name in order:
        dtype, shape = shapes[name]
        if _core.dtype_name(dtype) not in _CODES:
            raise ValueError(f"save_file(): the format has no {dtype}, as {name!r} is")
        place = [at, at + math.prod(shape) * dtype.itemsize]
        code = _CODES[_core.dtype_name(dtype)]
        header[name] = {"dtype": code, "shape": list(shape), "data_offsets": place}
        at = place[1]
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    write(struct.pack("<Q", len(text)))
    write(text)
    for name in order:
        _write_tensor(write, tensor_of(name))


class _NamedTwice(Exception):
    """A table of the header has two entries of one name."""


def _refuse(what):
    return ValueError(f"load_file(): not a whole safetensors file: {what}")


def _table_of(pairs):
    table = dict(pairs)
    if len(table) != len(pairs):
        raise _NamedTwice
    return table


def _read_header(file, length):
    head = file.read(8)
    if len(head) != 8:
        raise _refuse("it has no header length")
    (size,) = struct.unpack("<Q", head)
    if size > min(_MAX_HEADER, length - 8):
        raise _refuse(f"a header of {size} bytes is too long")
    text = file.read(size)
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_table_of)
    except _NamedTwice as error:
        raise _refuse("the header names something twice") from error
    except RecursionError as error:
        raise _refuse("the header is nested too deeply") from error
    except ValueError as error:
        raise _refuse(f"the header is not JSON ({error})") from error
    if not isinstance(header, dict):
        raise _refuse("the header is not a table")
    metadata = header.pop("__metadata__", None)
    if metadata is not None and not _is_text_table(metadata):
        raise _refuse("the metadata is not a table of texts")
    return header, metadata or {}, 8 + size


def _is_text_table(table):
    return isinstance(table, dict) and all(isinstance(text, str) for text in table.values())


def _are_numbers(values):
    return isinstance(values, list) and all(
        type(number) is int and 0 <= number < 2**63 for number in values
    )


def _parse_entry(name, entry, available):
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise _refuse(f"entry {name!r:.80} is malformed")
    code, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in _DTYPES:
        raise _refuse(f"entry {name!r:.80} has an unknown dtype {code!r:.80}")
    if not _are_numbers(shape) or not _are_numbers(place) or len(place) != 2:
        raise _refuse(f"entry {name!r:.80} has numbers that are no sizes")
    if len(shape) > _core.MAX_DIMS:
        raise _refuse(
            f"entry {name!r:.80} has {len(shape)} dimensions; at most {_core.MAX_DIMS} are read"
        )
    dtype, (start, end) = _core.dtype_named(_DTYPES[code]), place
    if start > end or end > available:
        raise _refuse(f"entry {name!r:.80} reaches outside the file")
    if end - start != math.prod(shape) * dtype.itemsize:
        raise _refuse(f"entry {name!r:.80} has {end - start} bytes for shape {shape} of {dtype}")
    return dtype, shape, start, end


def _check_places(places, available):
    """Raises ValueError unless the tensors fill what is behind the header, and each byte once."""
    at = 0
    for start, end, name in sorted(places):
        if start != at:
            raise _refuse(f"before entry {name!r:.80}, at byte {at}, are bytes of none, or of two")
        at = end
    if at != available:
        raise _refuse(f"{available - at} bytes at its end belong to no tensor")


def _read_bytes(file, size, name):
    data = bytearray(size)
    if read_into(file, data) != size:
        raise _refuse(f"entry {name!r:.80} is cut off")
    return data


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
        entries, _ = read_entries(file)
        for name, entry in entries.items():
            tensor = read_tensor(file, name, entry)
            tensors[name] = tensor if str(device) == "cpu" else tensor.to(device)
    return tensors


class Entry(NamedTuple):
    """Where a file has a tensor: its bytes from `start` to `end`."""

    dtype: facula.dtype
    shape: list
    start: int
    end: int


def read_entries(file):
    """What a file in the safetensors format has.

    Args:
        file: a seekable file object of bytes.

    Returns:
        dict of Entry by name, dict: the tensors, and the metadata

    Raises:
        ValueError: the file is damaged or hostile.
    """
    length = file.seek(0, 2)
    file.seek(0)
    header, metadata, base = _read_header(file, length)
    available = length - base
    found = {name: _parse_entry(name, entry, available) for name, entry in header.items()}
    _check_places([(entry[2], entry[3], name) for name, entry in found.items()], available)
    entries = {
        name: Entry(dtype, shape, base + start, base + end)
        for name, (dtype, shape, start, end) in found.items()
    }
    return entries, metadata


def read_tensor(file, name, entry):
    """One tensor of a file.

    Args:
        file: a seekable file object of bytes.
        name (str): of the tensor, for errors.
        entry (Entry): where it is.
    """
    file.seek(entry.start)
    storage = _core.storage_over(_read_bytes(file, entry.end - entry.start, name))
    stride = _contiguous_stride(entry.shape)
    return _core.tensor_over(storage, entry.dtype, 0, entry.shape, stride, False)
