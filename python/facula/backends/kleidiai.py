"""KleidiAI: this build has its own threads and kernels."""


def is_available():
    """Whether KleidiAI is there: False in this build.

    Example:
        >>> facula.backends.kleidiai.is_available()
        False
    """
    return False
