"""Variable: a name of old for Tensor."""

from __future__ import annotations

from facula import _C

__all__ = ["VariableMeta", "Variable"]


class VariableMeta(type):
    """Makes every tensor an instance of Variable."""

    def __instancecheck__(cls, other):
        return isinstance(other, _C.Tensor)


class _Engine:
    """The engine that runs backward passes, by the names that PyTorch gives it."""

    @staticmethod
    def queue_callback(callback):
        """Run `callback()` when the pass that runs now has finished."""
        _C._queue_callback(callback)


class Variable(metaclass=VariableMeta):
    """The tensor itself: tensors and variables are one since long.

    Args:
        data (Tensor): shared by the result.
        requires_grad (bool): whether the result asks for a gradient.
    """

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad=False, volatile=None):
        import facula

        if data is None:
            data = facula.tensor([])
        return data.detach().requires_grad_(requires_grad)
