"""NNPACK: this build has its own kernels. The flag is kept for programs that set it."""

from facula.backends import _flags


def is_available():
    """Whether NNPACK is there: False in this build.

    Example:
        >>> facula.backends.nnpack.is_available()
        False
    """
    return False


_flags.install(__name__, {"enabled": True}, {"enabled": False})
