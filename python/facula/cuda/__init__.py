"""CUDA devices, of which this build has none: every name is here and answers truthfully.

Questions (`is_available`, `device_count`, `memory_allocated`) are answered; what needs a device
raises AssertionError. Where a plug-in brings CUDA devices, the names are those of
`facula.accelerator` for them.
"""

from __future__ import annotations

import facula
from facula import _C, _missing

_C._lazy_module(__name__)

# File -> names that are found here, too.
_NAMES = {
    "memory": "caching_allocator_alloc caching_allocator_delete caching_allocator_enable "
    "change_current_allocator empty_cache get_allocator_backend get_per_process_memory_fraction "
    "host_memory_stats list_gpu_processes max_memory_allocated max_memory_cached "
    "max_memory_reserved mem_get_info memory_allocated memory_cached memory_reserved "
    "memory_snapshot memory_stats memory_stats_as_nested_dict memory_summary MemPool "
    "reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached "
    "reset_accumulated_host_memory_stats reset_peak_host_memory_stats "
    "reset_peak_memory_stats set_per_process_memory_fraction use_mem_pool "
    "CUDAPluggableAllocator",
    "random": "get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed "
    "seed_all set_rng_state set_rng_state_all",
    "streams": "Event ExternalStream Stream StreamContext current_stream default_stream "
    "get_stream_from_external set_stream stream",
    "green_contexts": "GreenContext",
    "graphs": "CUDAGraph export_dot export_graph_data "
    "graph graph_pool_handle is_current_stream_capturing "
    "make_graphed_callables",
    "_types": "BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage ByteTensor "
    "CharStorage CharTensor ComplexDoubleStorage ComplexFloatStorage DoubleStorage DoubleTensor "
    "FloatStorage FloatTensor HalfStorage HalfTensor IntStorage IntTensor LongStorage LongTensor "
    "ShortStorage ShortTensor",
}
_FILE_OF = {name: file for file, names in _NAMES.items() for name in names.split()}
_MODULES = ("amp", "comm", "nccl", "nvtx", "profiler", "_utils")

OutOfMemoryError = _C.OutOfMemoryError
AcceleratorError = _C.AcceleratorError
default_generators = ()
has_half = has_magma = False


def __getattr__(name):
    if name in _FILE_OF:
        value = getattr(_missing.submodule(__name__, _FILE_OF[name]), name)
    elif name in _NAMES or name in _MODULES:
        value = _missing.submodule(__name__, name)
    else:
        raise _missing.attribute(__name__, name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_FILE_OF, *_NAMES, *_MODULES})


def current_solver_handle():
    """The handle of the solver library; AssertionError without a CUDA device."""
    facula.cuda.init()
    raise NotImplementedError("cuda.current_solver_handle(): devices share no solver handle yet")


class DeferredCudaCallError(Exception):
    """A call that waited for CUDA to start has failed."""


class CudaError(RuntimeError):
    """CUDA's runtime answered with an error code."""

    def __init__(self, code):
        super().__init__(f"CUDA error {code}")


def is_available():
    """Whether CUDA devices can be used: False in a build without them."""
    return device_count() > 0


def device_count():
    """The number of CUDA devices; 0 in a build without them."""
    return _C._device_count("cuda")


def is_initialized():
    """Whether CUDA was started: False without devices."""
    return is_available()


def init():
    """Start CUDA.

    Raises:
        AssertionError: there is no CUDA device.
    """
    if not is_available():
        raise AssertionError("Torch not compiled with CUDA enabled")


_lazy_init = init


def _is_compiled():
    return is_available()


def _is_in_bad_fork():
    return False


def _lazy_call(callable, **kwargs):
    """Run a function once CUDA is started; without devices that is never."""
    if is_available():
        callable()


def current_device():
    """The index of the current CUDA device; AssertionError without one."""
    init()
    return _C._current_device_index("cuda")


def set_device(device):
    """Make a CUDA device the current one; AssertionError without one, unless `device` is negative.

    Args:
        device (device | str | int): which; nothing is done for a negative number.
    """
    from facula.cuda._utils import _get_device_index

    index = _get_device_index(device)
    if index < 0:
        return
    init()
    facula.accelerator.set_device_index(index)


def synchronize(device=None):
    """Wait for all work of a CUDA device; AssertionError without one."""
    init()
    facula.accelerator.synchronize(device)


def get_device_name(device=None):
    """The name of a CUDA device; AssertionError without one."""
    return get_device_properties(device).name


def get_device_capability(device=None):
    """The (major, minor) capability of a CUDA device; AssertionError without one."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def get_device_properties(device=None):
    """The properties of a CUDA device; AssertionError without one."""
    init()
    raise NotImplementedError("cuda.get_device_properties(): no plug-in tells properties yet")


def can_device_access_peer(device, peer_device):
    """Whether one CUDA device reads another's memory; AssertionError without devices."""
    init()
    return False


def get_arch_list():
    """The architectures that kernels were compiled for: none without CUDA."""
    return []


def get_gencode_flags():
    """The compiler flags of those architectures: none without CUDA."""
    return ""


def is_bf16_supported(including_emulation=True):
    """Whether the current CUDA device computes in bfloat16: False without one."""
    return is_available()


def is_tf32_supported():
    """Whether the current CUDA device computes in TF32: False without one."""
    return is_available()


def ipc_collect():
    """Free memory that other processes gave back; AssertionError without a CUDA device."""
    init()


def cudart():
    """CUDA's runtime library; AssertionError without a CUDA device."""
    init()
    raise NotImplementedError("cuda.cudart(): the runtime library is not shown to Python")


def current_blas_handle():
    """The handle of cuBLAS; AssertionError without a CUDA device."""
    init()
    raise NotImplementedError("cuda.current_blas_handle(): the handle is not shown to Python")


def get_sync_debug_mode():
    """What happens at calls that wait for the device: 0, nothing; AssertionError without one."""
    init()
    return 0


def set_sync_debug_mode(debug_mode):
    """Set what happens at calls that wait for the device; AssertionError without one."""
    init()


def _no_management_library():
    raise ModuleNotFoundError("nvidia-ml-py does not seem to be installed or it can't be imported.")


def utilization(device=None):
    """The share of time that a device was busy; ModuleNotFoundError without NVIDIA's library."""
    _no_management_library()


def memory_usage(device=None):
    """The share of time that memory was busy; ModuleNotFoundError without NVIDIA's library."""
    _no_management_library()


def device_memory_used(device=None):
    """Bytes used on a device by everyone; ModuleNotFoundError without NVIDIA's library."""
    _no_management_library()


def temperature(device=None):
    """A device's temperature; ModuleNotFoundError without NVIDIA's library."""
    _no_management_library()


def power_draw(device=None):
    """A device's power; ModuleNotFoundError without NVIDIA's library."""
    _no_management_library()


def clock_rate(device=None):
    """A device's clock; ModuleNotFoundError without NVIDIA's library."""
    _no_management_library()


class device:
    """Context manager: a CUDA device is the current one within; nothing for a negative index.

    Args:
        device (device | str | int): which.

    Raises:
        AssertionError: on entry, where there is no CUDA device.
    """

    def __init__(self, device):
        from facula.cuda._utils import _get_device_index

        self.idx = _get_device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self):
        if self.idx is not None and self.idx >= 0:
            self.prev_idx = current_device()
            set_device(self.idx)

    def __exit__(self, *exception):
        if self.prev_idx >= 0:
            set_device(self.prev_idx)
        return False


class device_of(device):
    """Context manager: the device of a tensor or storage is current; nothing for one of the CPU."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else -1)
