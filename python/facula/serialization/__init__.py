"""Saving objects to files and loading them, in PyTorch's format."""

from collections.abc import Callable

from facula import UntypedStorage, device

from ._core import StorageType
from ._globals import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from ._load import get_unsafe_globals_in_checkpoint, load
from ._locations import (
    default_restore_location,
    location_tag,
    register_package,
    validate_cuda_device,
    validate_hpu_device,
)
from ._options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from ._rebuild import layout_named as _get_layout
from ._save import save
from ._support import (
    SourceChangeWarning,
    check_module_version_greater_or_equal,
    mkdtemp,
    normalize_storage_type,
    storage_to_tensor_type,
)

# What packages write in their own signatures.
MAP_LOCATION = (
    Callable[[UntypedStorage, str], UntypedStorage] | device | str | dict[str, str] | None
)
DEFAULT_PROTOCOL = 2

__all__ = [
    "SourceChangeWarning",
    "mkdtemp",
    "register_package",
    "check_module_version_greater_or_equal",
    "validate_cuda_device",
    "validate_hpu_device",
    "location_tag",
    "default_restore_location",
    "normalize_storage_type",
    "storage_to_tensor_type",
    "save",
    "load",
    "StorageType",
    "LoadEndianness",
    "get_crc32_options",
    "set_crc32_options",
    "get_default_load_endianness",
    "set_default_load_endianness",
    "get_default_mmap_options",
    "set_default_mmap_options",
    "clear_safe_globals",
    "get_safe_globals",
    "add_safe_globals",
    "safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "skip_data",
]
