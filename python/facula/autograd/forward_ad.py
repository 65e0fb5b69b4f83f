"""Forward-mode differentiation: tensors that carry a tangent, the derivative along a direction."""

from __future__ import annotations

from typing import NamedTuple

import facula
from facula import _C, _capture
from facula.autograd.grad_mode import _Switch

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_NO_LEVEL = -1
_current_level = _NO_LEVEL


class UnpackedDualTensor(NamedTuple):
    """What :func:`unpack_dual` returns: the primal, and the tangent or None."""

    primal: facula.Tensor
    tangent: facula.Tensor | None


def enter_dual_level():
    """Start a level of forward mode, in which tensors can carry tangents.

    Returns:
        int: the level, 0.

    Raises:
        RuntimeError: a level is on already.
    """
    global _current_level
    _capture.finish("forward-mode differentiation")
    _C._enter_dual_level()
    _current_level += 1
    return _current_level


def exit_dual_level(*, level=None):
    """End the level of forward mode: every tangent of it is gone.

    Args:
        level (int): what :func:`enter_dual_level` returned; default: the last one.

    Raises:
        RuntimeError: `level` is not the last one, or there is none.
    """
    global _current_level
    wanted = _current_level if level is None else level
    if wanted != _current_level:
        raise RuntimeError(
            f"exit_dual_level(): only the last level can end, {_current_level}; got {wanted}"
        )
    if wanted == _NO_LEVEL:
        raise RuntimeError("exit_dual_level(): no level is on")
    _C._exit_dual_level()
    _current_level -= 1


def make_dual(tensor, tangent, *, level=None):
    """A view of a tensor that carries a tangent.

    Args:
        tensor (Tensor): the primal, floating point or complex.
        tangent (Tensor): of the primal's shape.
        level (int): the level of forward mode; default: the last one.

    Returns:
        Tensor: shares memory with `tensor`; derivatives flow to both arguments.

    Raises:
        RuntimeError: no level is on, shapes differ, or one of the two has a tangent already.
        ValueError: one of the two is neither floating point nor complex.

    Example:
        >>> with facula.autograd.forward_ad.dual_level():
        ...     x = facula.autograd.forward_ad.make_dual(facula.tensor(3.0), facula.tensor(1.0))
        ...     facula.autograd.forward_ad.unpack_dual(x * x).tangent
        tensor(6.)
    """
    if level is None:
        level = _current_level
    if level < 0:
        raise RuntimeError(
            "make_dual(): no level of forward mode is on; enter_dual_level() starts one"
        )
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(
                f"make_dual(): {name} must be floating point or complex; got {value.dtype}"
            )
    if level != 0:
        raise RuntimeError(f"make_dual(): the only level is 0; got {level}")
    return _C._make_dual(tensor, tangent)


def unpack_dual(tensor, *, level=None):
    """The tensor without its tangent, and the tangent.

    Args:
        tensor (Tensor): with or without a tangent.
        level (int): the level of forward mode; default: the last one.

    Returns:
        UnpackedDualTensor: (primal, tangent); the tangent is None where there is none.
    """
    if level is None:
        level = _current_level
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    if level != 0:
        raise RuntimeError(f"unpack_dual(): the only level is 0; got {level}")
    if not isinstance(tensor, _C.Tensor):
        raise TypeError(f"unpack_dual(): tensor must be a Tensor; got {type(tensor).__name__}")
    return UnpackedDualTensor(*_C._unpack_dual(tensor))


class dual_level(_Switch):
    """Context manager and decorator: a level of forward mode.

    Example:
        >>> with facula.autograd.forward_ad.dual_level():
        ...     dual = facula.autograd.forward_ad.make_dual(facula.ones(2), facula.ones(2))
    """

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *exception):
        exit_dual_level()


class _set_fwd_grad_enabled(_Switch):
    """Context manager and decorator: sets whether tangents are followed.

    Args:
        mode (bool): whether they are.
    """

    def __init__(self, mode):
        self.mode = mode
        self.prev = _C._is_fwd_grad_enabled()
        _C._set_fwd_grad_enabled(mode)

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        _C._set_fwd_grad_enabled(self.prev)

    def clone(self):
        return type(self)(self.mode)


def _is_fwd_grad_enabled():
    return _C._is_fwd_grad_enabled()
