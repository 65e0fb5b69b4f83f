"""NCCL's library: where it is, which version, and what communicators are made with."""

from __future__ import annotations

import ctypes
import os
import sys
from datetime import timedelta
from functools import cache

from facula import _C
from facula._C import _distributed

default_pg_nccl_timeout = timedelta(minutes=10)

INTERFACE = (2, 32, 3)  # that src/distributed/engines/nccl/nccl_library.h declares a part of

# The file of NCCL's library, in place of the one that is found.
_VARIABLE = "FACULA_NCCL_LIBRARY"
_NAME = "libnccl.so.2"
_UNDEFINED = -(2**31)  # NCCL chooses
# Whether `Work.wait` blocks the host, as PyTorch's programs ask for it.
_BLOCKING_WAIT = ("TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT")


def library():
    """The library's file, or its name where the loader finds it; None where it is not.

    The first of: the environment's, that of the PyPI package, that of the system.
    """
    return _library(os.environ.get(_VARIABLE), tuple(sys.path))


@cache
def _library(wanted, folders):
    if wanted:
        return wanted
    for folder in folders:
        path = os.path.join(folder, "nvidia", "nccl", "lib", _NAME)
        if os.path.exists(path):
            return path
    try:
        ctypes.CDLL(_NAME)
    except OSError:
        return None
    return _NAME


def is_available():
    """Whether the library is there, and facula's engine for it."""
    return library() is not None and not _distributed.why_not("nccl")


def version():
    """The library's version.

    Returns:
        tuple: (major, minor, patch)

    Raises:
        RuntimeError: it is not there, or cannot be opened.
    """
    path = library()
    if path is None:
        raise RuntimeError(_missing("nccl.version()"))
    number = ctypes.c_int()
    try:
        ctypes.CDLL(path).ncclGetVersion(ctypes.byref(number))
    except (OSError, AttributeError) as error:
        raise RuntimeError(
            f"nccl.version(): expected NCCL's library in {path}; got {error}"
        ) from None
    return number.value // 10000, number.value // 100 % 100, number.value % 100


def _missing(call):
    return (
        f"{call}: expected NCCL's library, of the package nvidia-nccl-cu12 or -cu13 or in "
        f"{_VARIABLE}; got none"
    )


def check_usable(kind):
    """RuntimeError unless NCCL can serve a kind of device here.

    Args:
        kind (str): the type of the device.
    """
    if kind in ("cpu", "meta") or not _C._device_count(kind):
        raise RuntimeError(
            f"init_process_group(): the backend nccl requires at least one device of an "
            f"accelerator; got none of type {kind}"
        )
    why = _distributed.why_not("nccl")
    if why:
        raise RuntimeError(f"init_process_group(): expected an engine for nccl; got {why}")
    if library() is None:
        raise RuntimeError(_missing("init_process_group()"))


class NCCLConfig:
    """What a communicator is made with; NCCL's documentation of ncclConfig_t has the values.

    Example:
        >>> options = facula.distributed.ProcessGroupNCCL.Options()
        >>> options.config.min_ctas = 4
    """

    blocking = cga_cluster_size = min_ctas = max_ctas = split_share = _UNDEFINED
    traffic_class = collnet_enable = cta_policy = nvls_ctas = max_p2p_peers = _UNDEFINED
    net_name = comm_name = None

    def __setattr__(self, name, value):
        if name not in _FIELDS:
            raise AttributeError(f"NCCLConfig: expected one of {_FIELDS}; got {name!r}")
        super().__setattr__(name, value)


_FIELDS = sorted(n for n in vars(NCCLConfig) if not n.startswith("_"))


class Options:
    """What a group over NCCL is made with.

    Args:
        is_high_priority_stream (bool): put calls that are not waited for on a stream that goes
            before others.

    Example:
        >>> facula.distributed.ProcessGroupNCCL.Options().backend
        'nccl'
    """

    backend = "nccl"
    split_from, split_color = None, -2
    lazy_init = enable_reconfigure = use_pg_for_symm_mem_rendezvous = False

    def __init__(self, is_high_priority_stream=False):
        self.is_high_priority_stream = is_high_priority_stream
        self.config = NCCLConfig()
        self._timeout = default_pg_nccl_timeout
        self.global_ranks_in_group, self.group_name = [], ""


def options_of(given):
    """The options of a group.

    Args:
        given (Options or None): what the caller has.

    Raises:
        TypeError: they are another backend's.
        NotImplementedError: they ask for a group that is split from another.
    """
    if given is None:
        return Options()
    if not isinstance(given, Options):
        raise TypeError(
            f"init_process_group(): expected ProcessGroupNCCL.Options as pg_options; got "
            f"{type(given).__name__}"
        )
    if given.split_from is not None:
        raise NotImplementedError(
            "init_process_group(): groups over NCCL are not split from others; "
            "new_group() makes them"
        )
    return given


def settings_of(options, device):
    """The engine's settings, as text.

    Args:
        options (Options): of the group.
        device (device or None): whose communicator is to be made at once.
    """
    path = library()
    settings = {"library": "" if path == _NAME else path}
    for name in _FIELDS:
        value = getattr(options.config, name)
        if value not in (None, _UNDEFINED):
            settings[name] = str(int(value) if isinstance(value, bool) else value)
    if options.is_high_priority_stream:
        settings["high_priority"] = "1"
    if device is not None:
        settings["device"] = str(device)
    if any(os.environ.get(name) == "1" for name in _BLOCKING_WAIT):
        settings["blocking_wait"] = "1"
    return settings
