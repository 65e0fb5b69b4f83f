"""OpenMP: this build has its own threads and kernels."""


def is_available():
    """Whether OpenMP is there: False in this build.

    Example:
        >>> facula.backends.openmp.is_available()
        False
    """
    return False
