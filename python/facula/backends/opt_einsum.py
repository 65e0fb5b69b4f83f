"""The package opt_einsum, which orders the products of `einsum`; facula does that itself."""

from facula.backends import _flags


def is_available():
    """Whether `einsum` uses opt_einsum: False in this build.

    Example:
        >>> facula.backends.opt_einsum.is_available()
        False
    """
    return False


def get_opt_einsum():
    """The package that `einsum` uses: None in this build."""
    return None


_flags.install(__name__, {"enabled": False, "strategy": None}, {})
