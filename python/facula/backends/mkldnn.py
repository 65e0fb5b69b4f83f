"""oneDNN: this build has its own kernels. The flags are kept for programs that set them."""

from facula.backends import _flags
from facula.backends._verbose import verbose  # noqa: F401

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2


def is_available():
    """Whether oneDNN is there: False in this build.

    Example:
        >>> facula.backends.mkldnn.is_available()
        False
    """
    return False


def is_acl_available():
    """Whether oneDNN has Arm's library: False in this build."""
    return False


_flags.install(
    __name__,
    {"enabled": True, "deterministic": False, "allow_tf32": True, "fp32_precision": "none"},
    {"enabled": False, "deterministic": False},
)
