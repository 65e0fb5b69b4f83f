"""Automatic mixed precision."""

from __future__ import annotations

import functools

import facula
from facula import _C

# What operators can be cast to.
_PRECISIONS = (facula.bfloat16, facula.float16)
# Kinds of devices that have autocasting where there is such a device, and the lower precision.
_ELSEWHERE = {
    **dict.fromkeys(("hpu", "maia", "xla"), facula.bfloat16),
    **dict.fromkeys(("ipu", "mps", "mtia", "privateuseone", "xpu"), facula.float16),
}


def _is_elsewhere(device_type):
    """Whether it is a kind of device that has autocasting, and that this process does not have."""
    if device_type not in _ELSEWHERE:
        return False
    try:
        _C._get_autocast_dtype(device_type)
    except RuntimeError:
        return True
    return False


class autocast:
    """Context manager and decorator: operators run in the precision that suits them.

    Args:
        device_type (str): "cpu" or an accelerator's type; each has a state of its own.
        dtype (facula.dtype): the lower precision; that of `get_autocast_dtype` if None.
        enabled (bool): whether autocasting is on within.
        cache_enabled (bool): whether casts of weights are kept within.

    Raises:
        RuntimeError: a type that is unknown, or that has no autocasting.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type {device_type!r}"
            )
        self.device = device_type
        self.fast_dtype = _C._get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled = enabled and self._is_possible()
        self._cache = _C.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled

    def _is_possible(self):
        """Whether it can be switched on; a warning says why not."""
        import warnings

        if self.device != "cpu" and not _C._device_count(self.device):
            text = f"{self.device} is not available: autocast is off"
        elif self.fast_dtype not in _PRECISIONS:
            text = f"autocast is off: on {self.device} dtype must be bfloat16 or float16"
        else:
            return True
        warnings.warn(text, stacklevel=3)
        return False

    def __enter__(self):
        self._before = _C._set_autocast(self.device, self._enabled, self.fast_dtype, self._cache)
        return self

    def __exit__(self, *exception):
        _C._set_autocast(*self._before)
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            with autocast(self.device, self.fast_dtype, self._enabled, self._cache):
                return function(*args, **kwargs)

        return run


def is_autocast_available(device_type):
    """Whether autocasting exists for a device type (str)."""
    if device_type in _ELSEWHERE:
        return True
    return facula.device(device_type).type not in ("meta", "vulkan")


def is_autocast_enabled(device_type="cuda"):
    """Whether autocasting is on for a device type (str)."""
    return not _is_elsewhere(device_type) and _C._is_autocast_enabled(device_type)


def set_autocast_enabled(device_type, enabled=None):
    """Switch autocasting on or off for a device type (str); for "cuda" with one argument."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    dtype = _C._get_autocast_dtype(device_type)
    _C._set_autocast(device_type, enabled, dtype, _C.is_autocast_cache_enabled())


def get_autocast_dtype(device_type):
    """The lower precision of a device type (str)."""
    if _is_elsewhere(device_type):
        return _ELSEWHERE[device_type]
    return _C._get_autocast_dtype(device_type)


def set_autocast_dtype(device_type, dtype):
    """Set the lower precision of a device type (str)."""
    enabled = _C._is_autocast_enabled(device_type)
    _C._set_autocast(device_type, enabled, dtype, _C.is_autocast_cache_enabled())


def _enter_autocast(*vals):
    """Switch autocasting on, with arguments of `autocast`; returns what `_exit_autocast` takes."""
    mode = autocast(*vals)
    mode.__enter__()
    return mode


def _exit_autocast(mode):
    """Put back what was before `_enter_autocast`."""
    mode.__exit__(None, None, None)


# --- functions of autograd


def _check_type(device_type):
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def _cast(value, device_type, dtype):
    """The tensors of a nest on the device, cast; float64 and whole numbers stay."""
    from facula.utils._pytree import tree_map

    def one(x):
        if not isinstance(x, facula.Tensor) or x.device.type != device_type:
            return x
        wanted = x.is_floating_point() and x.dtype != facula.float64
        return x.to(dtype) if wanted else x

    return tree_map(one, value)


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """A decorator for `forward` of an autograd Function that is called under autocast.

    Args:
        device_type (str): the device whose autocasting is meant.
        cast_inputs (facula.dtype): where autocasting is on, it is switched off within, and tensors
            of floating-point dtypes on the device are cast to this first.

    Example:
        >>> class Double(facula.autograd.Function):
        ...     @staticmethod
        ...     @facula.amp.custom_fwd(device_type="cpu", cast_inputs=facula.float32)
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @facula.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> with facula.autocast("cpu"):
        ...     y = Double.apply(facula.ones(1, dtype=facula.bfloat16))
        >>> y.dtype == facula.float32
        True
    """
    _check_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def run(*args, **kwargs):
        ctx = args[0]
        enabled = is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = enabled
            return fwd(*args, **kwargs)
        ctx._fwd_used_autocast = False
        if not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs)
            )

    return run


def custom_bwd(bwd=None, *, device_type):
    """A decorator for `backward` of such a Function: autocasting is as it was in `forward`."""
    _check_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def run(*args, **kwargs):
        ctx = args[0]
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(*args, **kwargs)

    return run


# --- names of old, one pair for each of two devices


def _names_of_old():
    def of(device_type):
        return (
            lambda: is_autocast_enabled(device_type),
            lambda enabled: set_autocast_enabled(device_type, enabled),
            lambda: get_autocast_dtype(device_type),
            lambda dtype: set_autocast_dtype(device_type, dtype),
        )

    return of("cpu"), of("cuda")


_CPU, _CUDA = _names_of_old()
is_autocast_cpu_enabled, set_autocast_cpu_enabled = _CPU[:2]
get_autocast_cpu_dtype, set_autocast_cpu_dtype = _CPU[2:]
get_autocast_gpu_dtype, set_autocast_gpu_dtype = _CUDA[2:]
