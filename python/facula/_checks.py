"""Assertions that programs and packages write into tensor code."""

from __future__ import annotations

import facula

_DEFAULT = "a condition that must hold does not; the check gives no message of its own"


def _fail(error_type, message):
    if message is None:
        raise error_type(_DEFAULT)
    raise error_type(str(message() if callable(message) else message))


def _check_with(error_type, cond, message):
    """Raise an error of this class unless a condition holds.

    Args:
        error_type (type): the exception's class.
        cond (bool or SymBool): the condition.
        message: text, a function that gives it, or None for a text of facula's.

    Raises:
        TypeError: `cond` is no bool.

    Example:
        >>> _check_with(ValueError, True, lambda: "is never made")
    """
    if isinstance(cond, facula.Tensor):
        raise TypeError(
            "cond must be a bool, but got a Tensor. For tensor conditions, use "
            "torch._check_tensor_all() to assert that all elements are true."
        )
    if not isinstance(cond, (bool, facula.SymBool)):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not issubclass(error_type, BaseException):
        raise TypeError(f"_check_with(): error_type must be an exception; got {error_type}")
    # A comparison of numbers that data decide is taken for true, and stands in the graph.
    if not (cond.node.expect() if isinstance(cond, facula.SymBool) else cond):
        _fail(error_type, message)


def _check(cond, message=None):
    """Raise RuntimeError unless a condition (bool) holds.

    Example:
        >>> _check(1 < 2, lambda: "one is less than two")
    """
    _check_with(RuntimeError, cond, message)


def _check_index(cond, message=None):
    """Raise IndexError unless a condition (bool) holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None):
    """Raise ValueError unless a condition (bool) holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None):
    """Raise TypeError unless a condition (bool) holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None):
    """Raise NotImplementedError unless a condition (bool) holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i, message=None, *, max=None):
    """Raise RuntimeError unless a number can be a size: at least 0, at most `max`."""
    _check(_condition(i >= 0), message)
    if max is not None:
        _check(_condition(i <= max), message)


def _condition(value):
    return value if isinstance(value, facula.SymBool) else bool(value)


def _check_tensor_all_with(error_type, cond, message=None):
    """Raise an error of this class unless all elements are true.

    Args:
        error_type (type): the exception's class.
        cond (bool tensor): the conditions.
        message: text, a function that gives it, or None for a text of facula's.

    Raises:
        TypeError: `cond` is no tensor of bools.
    """
    if not isinstance(cond, facula.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not facula.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond, message=None):
    """Raise RuntimeError unless all elements (bool tensor) are true."""
    _check_tensor_all_with(RuntimeError, cond, message)
