"""cuDNN: this build has none. Its flags are kept for programs that set them.

Example:
    >>> with facula.backends.cudnn.flags(enabled=False):
    ...     print(facula.backends.cudnn.enabled)
    False
"""

from facula.backends import _flags

CUDNN_TENSOR_DTYPES = frozenset()


def is_available():
    """Whether cuDNN is there: False in this build."""
    return False


def version():
    """The version of cuDNN: None in this build."""
    return None


def is_acceptable(tensor):
    """Whether cuDNN could take a tensor: False in this build."""
    return False


_flags.install(
    __name__,
    {
        "enabled": True,
        "benchmark": False,
        "benchmark_limit": 10,
        "deterministic": False,
        "allow_tf32": True,
        "fp32_precision": "none",
        "depthwise_kernel": "auto",
    },
    {"enabled": False, "benchmark": False, "benchmark_limit": 10, "deterministic": False},
)
