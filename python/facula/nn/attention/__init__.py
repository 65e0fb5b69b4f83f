"""Attention: choice of its kernels, causal masks as objects, and attention with own scores."""

from __future__ import annotations

import contextlib
from enum import Enum

from facula import _missing


class SDPBackend(Enum):
    """Kernels of `scaled_dot_product_attention` that `sdpa_kernel` can name.

    The names are PyTorch's. On the CPU one kernel serves all, so that the choice changes nothing.
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self):
        return self.value

    __index__ = __int__


_ORDER = [
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.OVERRIDEABLE,
]
# The kernels that may be used, the preferred one first.
_allowed = list(_ORDER)


def _backend_from_string(name):
    return SDPBackend[name]


def _cur_sdpa_kernel_backends(with_priority=False):
    return list(_allowed)


def _checked(backends):
    if isinstance(backends, SDPBackend):
        return [backends]
    if not isinstance(backends, list):
        raise AssertionError(
            "sdpa_kernel(): backends must be a SDPBackend or a list of them; got "
            f"{type(backends).__name__}"
        )
    return list(dict.fromkeys(backends))


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """A context in which attention uses only these kernels.

    Args:
        backends: SDPBackend, or a list of them.
        set_priority: whether the order of the list is that of preference.

    Raises:
        AssertionError: another type.

    Example:
        >>> from facula.nn.attention import SDPBackend, sdpa_kernel
        >>> x = facula.ones(1, 1, 2, 4)
        >>> with sdpa_kernel(SDPBackend.MATH):
        ...     y = facula.nn.functional.scaled_dot_product_attention(x, x, x)
    """
    global _allowed
    wanted, before = _checked(backends), _allowed
    if not set_priority:
        wanted = [backend for backend in _ORDER if backend in wanted]
    _allowed = wanted
    try:
        yield {}
    finally:
        _allowed = before


def _sdpa_kernel(backends, set_priority=False):
    global _allowed
    _allowed = _checked(backends)


@contextlib.contextmanager
def _sdpa_kernel_variadic(*backends):
    with sdpa_kernel(list(backends)):
        yield


# ---- implementations of flash attention for GPUs: facula has none of its own

_flash_implementations = {}
_current_flash = None


def register_flash_attention_impl(impl, *, register_fn):
    """Make an implementation of flash attention known.

    Args:
        impl: its name. register_fn: called when it is chosen; returns a handle with `remove`, or
            None.
    """
    _flash_implementations[impl] = register_fn


def activate_flash_attention_impl(impl):
    """Choose a registered implementation. Raises ValueError for another name."""
    global _current_flash
    if impl not in _flash_implementations:
        raise ValueError(
            f"activate_flash_attention_impl(): impl must be one of {list_flash_attention_impls()}; "
            f"got {impl!r}"
        )
    restore_flash_attention_impl(False)
    _current_flash = impl, _flash_implementations[impl]()


def restore_flash_attention_impl(_raise_warn=True):
    """Go back to the implementation of before."""
    global _current_flash
    if _current_flash is not None and hasattr(_current_flash[1], "remove"):
        _current_flash[1].remove()
    _current_flash = None


def list_flash_attention_impls():
    """The names of the registered implementations; returns a list."""
    return sorted(_flash_implementations)


def current_flash_attention_impl():
    """The name of the chosen implementation, or None."""
    return None if _current_flash is None else _current_flash[0]


def __getattr__(name):
    if name in ("bias", "flex_attention", "varlen"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    if name == "WARN_FOR_UNFUSED_KERNELS":
        return False
    raise _missing.attribute(__name__, name)


__all__ = [
    "SDPBackend",
    "sdpa_kernel",
    "register_flash_attention_impl",
    "activate_flash_attention_impl",
    "list_flash_attention_impls",
    "current_flash_attention_impl",
    "restore_flash_attention_impl",
]
