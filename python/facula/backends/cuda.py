"""CUDA's libraries: this build has none. The flags are kept for programs that set them."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

from facula import _precision

__all__ = [
    "is_built",
    "cuFFTPlanCacheAttrContextProp",
    "cuFFTPlanCache",
    "cuFFTPlanCacheManager",
    "cuBLASModule",
    "preferred_linalg_library",
    "preferred_blas_library",
    "preferred_rocm_fa_library",
    "cufft_plan_cache",
    "matmul",
    "enable_flash_sdp",
    "flash_sdp_enabled",
    "enable_mem_efficient_sdp",
    "mem_efficient_sdp_enabled",
    "math_sdp_enabled",
    "enable_math_sdp",
    "allow_fp16_bf16_reduction_math_sdp",
    "fp16_bf16_reduction_math_sdp_allowed",
    "is_flash_attention_available",
    "can_use_flash_attention",
    "can_use_efficient_attention",
    "can_use_cudnn_attention",
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "sdp_kernel",
]


def is_built():
    """Whether this build can use CUDA: False.

    Example:
        >>> facula.backends.cuda.is_built()
        False
    """
    return False


# --- products


class cuBLASModule:
    """The flags of products: `allow_tf32` goes with `facula.set_float32_matmul_precision`."""

    def __init__(self):
        self.__dict__.update(
            allow_fp16_reduced_precision_reduction=True,
            allow_bf16_reduced_precision_reduction=True,
            allow_fp16_accumulation=False,
        )

    def __getattr__(self, name):
        if name == "allow_tf32":
            return _precision.get_float32_matmul_precision() != "highest"
        if name == "fp32_precision":
            return "tf32" if self.allow_tf32 else "none"
        raise AttributeError(f"Unknown attribute {name}")

    def __setattr__(self, name, value):
        if name == "allow_tf32":
            _precision.set_float32_matmul_precision("high" if value else "highest")
        elif name == "fp32_precision":
            _precision.set_float32_matmul_precision("high" if value == "tf32" else "highest")
        elif name in self.__dict__:
            self.__dict__[name] = value
        else:
            raise AttributeError(f"Unknown attribute {name}")


matmul = cuBLASModule()


def _preferred(kind, known):
    chosen = ["default"]

    def preferred(backend=None):
        if backend is not None:
            if backend not in known:
                raise RuntimeError(f"Unknown input value. Choose from: {', '.join(known)}.")
            chosen[0] = backend
        return chosen[0]

    preferred.__doc__ = f"The {kind} that is preferred (str), after setting it if one is given."
    return preferred


preferred_linalg_library = _preferred("library of factorizations", ("default", "cusolver", "magma"))
preferred_blas_library = _preferred(
    "library of products", ("default", "cublas", "hipblas", "cublaslt", "hipblaslt", "ck")
)
preferred_rocm_fa_library = _preferred("library of attention", ("default", "aotriton", "ck"))


# --- plans of Fourier transforms


class cuFFTPlanCache:
    """The plans of one device, of which there is none: RuntimeError."""

    def __init__(self, device_index=0):
        self.device_index = device_index

    def _absent(self, *value):
        raise RuntimeError("cufft_plan_cache: this build has no CUDA device")

    size = property(_absent)
    max_size = property(_absent, _absent)
    clear = _absent


class cuFFTPlanCacheAttrContextProp(property):
    """A property of the plans of one device."""


class cuFFTPlanCacheManager:
    """The plans of all devices."""

    def __getitem__(self, device):
        raise RuntimeError(
            "cufft_plan_cache: expected 0 <= device index < 0, but got device with index "
            f"{device if isinstance(device, int) else device.index}"
        )

    def __getattr__(self, name):
        return getattr(cuFFTPlanCache(), name)


cufft_plan_cache = cuFFTPlanCacheManager()


# --- ways of attention: kept, as there is one way here

_SDP = dict.fromkeys(("flash", "mem_efficient", "math", "cudnn"), True)
_SDP["fp16_bf16_reduction"] = False


def flash_sdp_enabled():
    """Whether the way "flash" is allowed."""
    return _SDP["flash"]


def enable_flash_sdp(enabled):
    """Allow the way "flash" (bool), or not."""
    _SDP["flash"] = bool(enabled)


def mem_efficient_sdp_enabled():
    """Whether the way "memory-efficient" is allowed."""
    return _SDP["mem_efficient"]


def enable_mem_efficient_sdp(enabled):
    """Allow the way "memory-efficient" (bool), or not."""
    _SDP["mem_efficient"] = bool(enabled)


def math_sdp_enabled():
    """Whether the way "math" is allowed."""
    return _SDP["math"]


def enable_math_sdp(enabled):
    """Allow the way "math" (bool), or not."""
    _SDP["math"] = bool(enabled)


def cudnn_sdp_enabled():
    """Whether cuDNN's way is allowed."""
    return _SDP["cudnn"]


def enable_cudnn_sdp(enabled):
    """Allow cuDNN's way (bool), or not."""
    _SDP["cudnn"] = bool(enabled)


def fp16_bf16_reduction_math_sdp_allowed():
    """Whether the way "math" may add in half types."""
    return _SDP["fp16_bf16_reduction"]


def allow_fp16_bf16_reduction_math_sdp(enabled):
    """Let the way "math" add in half types (bool), or not."""
    _SDP["fp16_bf16_reduction"] = bool(enabled)


def is_flash_attention_available():
    """Whether CUDA's flash attention is there: False in this build."""
    return False


def can_use_flash_attention(params, debug=False):
    """Whether CUDA's flash attention can take these inputs: False in this build."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention


@contextmanager
def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """Context manager: which ways of attention are allowed within. Its successor is
    `facula.nn.attention.sdpa_kernel`.
    """
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. Please see "
        "`torch.nn.attention.sdpa_kernel()`",
        FutureWarning,
        stacklevel=3,
    )
    before = dict(_SDP)
    _SDP.update(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
    try:
        yield
    finally:
        _SDP.update(before)
