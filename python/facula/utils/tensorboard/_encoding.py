"""Protocol buffers' wire format, TensorFlow's records, and the few messages that events are.

Sources: the Protocol Buffers encoding guide; tensorflow/core/util/event.proto and
framework/summary.proto for the numbers of fields; the TFRecord format.
"""

from __future__ import annotations

import struct


def varint(number):
    """A whole number in groups of seven bits, the lowest first."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def integer(field, number):
    """A field with a whole number."""
    return varint(field << 3) + varint(int(number))


def double(field, number):
    """A field with a float of 64 bits."""
    return varint(field << 3 | 1) + struct.pack("<d", number)


def single(field, number):
    """A field with a float of 32 bits."""
    return varint(field << 3 | 5) + struct.pack("<f", number)


def block(field, content):
    """A field with bytes, text or a message."""
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def doubles(field, numbers):
    """A field with many floats of 64 bits."""
    return block(field, struct.pack(f"<{len(numbers)}d", *numbers))


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC = _crc_table()


def masked_crc32c(data):
    """The check of a record: Castagnoli's CRC, rotated and shifted by a constant."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data):
    """A record: length, its check, the data, their check."""
    length = struct.pack("<Q", len(data))
    return b"".join(
        (
            length,
            struct.pack("<I", masked_crc32c(length)),
            data,
            struct.pack("<I", masked_crc32c(data)),
        )
    )


# --- messages


def event(wall_time, step=None, *, summary=None, file_version=None):
    """An Event message."""
    parts = [double(1, wall_time)]
    if step is not None:
        parts.append(integer(2, step))
    if file_version is not None:
        parts.append(block(3, file_version))
    if summary is not None:
        parts.append(block(5, summary))
    return b"".join(parts)


def value(tag, content, plugin=None, plugin_content=b""):
    """A Summary message with one value.

    Args:
        tag (str): its name.
        content (bytes): the field that holds the value.
        plugin (str): the plugin of TensorBoard that shows it.
        plugin_content (bytes): a message for the plugin.
    """
    parts = [block(1, tag), content]
    if plugin is not None:
        data = block(1, plugin) + (block(2, plugin_content) if plugin_content else b"")
        parts.append(block(9, block(1, data)))
    return block(1, b"".join(parts))


def text_tensor(texts):
    """A TensorProto of texts, one dimension."""
    shape = block(2, integer(1, len(texts)))
    return integer(1, 7) + block(2, shape) + b"".join(block(8, text) for text in texts)


# By name of the dtype: TensorFlow's number of it, and the field and form of its elements.
_TENSOR_KINDS = {
    "float32": (1, 5, "f"),
    "float64": (2, 6, "d"),
    "int32": (3, 7, None),
    "uint8": (4, 7, None),
    "int16": (5, 7, None),
    "int8": (6, 7, None),
    "int64": (9, 10, None),
    "bool": (10, 11, None),
}


def tensor(shape, numbers, dtype="float32"):
    """A TensorProto.

    Args:
        shape (tuple of int): the sizes.
        numbers (list): the elements, row after row.
        dtype (str): of the elements, a name of `_TENSOR_KINDS`.
    """
    kind, field, form = _TENSOR_KINDS[dtype]
    sizes = b"".join(block(2, integer(1, size)) for size in shape)
    if form is None:
        elements = b"".join(varint(int(number)) for number in numbers)
    else:
        elements = struct.pack(f"<{len(numbers)}{form}", *numbers)
    return integer(1, kind) + block(2, sizes) + block(field, elements)


def histogram(low, high, count, total, squares, limits, counts):
    """A HistogramProto: figures, upper limits of buckets, and counts."""
    figures = (low, high, count, total, squares)
    head = b"".join(double(i + 1, float(figure)) for i, figure in enumerate(figures))
    return head + doubles(6, limits) + doubles(7, counts)
