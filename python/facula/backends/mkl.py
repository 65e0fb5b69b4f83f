"""MKL: this build has its own kernels."""

from facula.backends._verbose import verbose  # noqa: F401

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available():
    """Whether MKL is there: False in this build.

    Example:
        >>> facula.backends.mkl.is_available()
        False
    """
    return False
