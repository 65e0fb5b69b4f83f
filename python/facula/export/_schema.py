"""What files of exported programs are made of: the numbers for dtypes and layouts, the versions.

The format is PyTorch's `.pt2` archive: a zip file with the graph as JSON, a record of bytes for
each storage, and a pickle of the sample arguments.
"""

from __future__ import annotations

import facula

SCHEMA_VERSION = {"major": 8, "minor": 20}
OPSET_VERSION = {"aten": 10}

WEIGHTS, CONSTANTS = "data/weights", "data/constants"
WEIGHTS_CONFIG = f"{WEIGHTS}/model_weights_config.json"
CONSTANTS_CONFIG = f"{CONSTANTS}/model_constants_config.json"

_DTYPES = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    9: "complex32",
    10: "complex64",
    11: "complex128",
    12: "bool",
    13: "bfloat16",
    28: "uint16",
    29: "float8_e4m3fn",
    30: "float8_e5m2",
    31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu",
    34: "uint32",
    35: "uint64",
}
_LAYOUTS = {
    1: "sparse_coo",
    2: "sparse_csr",
    3: "sparse_csc",
    4: "sparse_bsr",
    5: "sparse_bsc",
    7: "strided",
}
_MEMORY_FORMATS = {
    1: "contiguous_format",
    2: "channels_last",
    3: "channels_last_3d",
    4: "preserve_format",
}
_TABLES = {"dtype": _DTYPES, "layout": _LAYOUTS, "memory format": _MEMORY_FORMATS}


def value_of(kind, number):
    """What a number in a file stands for.

    Args:
        kind (str): "dtype", "layout" or "memory format".
        number (int): as the file has it.

    Raises:
        NotImplementedError: it stands for nothing that facula has.
    """
    name = _TABLES[kind].get(number)
    if name is None or not hasattr(facula, name):
        raise NotImplementedError(f"load(): expected a known {kind}; got the number {number}")
    return getattr(facula, name)


def number_of(kind, value):
    """The number that stands in files for a dtype, layout or memory format.

    Raises:
        NotImplementedError: the format has none.
    """
    name = str(value).rpartition(".")[2]
    for number, known in _TABLES[kind].items():
        if known == name:
            return number
    raise NotImplementedError(f"save(): expected a {kind} that .pt2 files have; got {value}")


def device_text(device):
    """A device as files have it."""
    return {"type": device.type, "index": device.index}
