"""Modes that see every operator call: TorchDispatchMode."""
from __future__ import annotations

from facula import _C


class TorchDispatchMode:
    """Context manager that sees every operator called within it, below autograd.

    A subclass defines `__torch_dispatch__(self, func, types, args=(), kwargs=None)`, where `func`
    is an OpOverload; calling it there goes on to the modes below.
    """

    def __init__(self, _dispatch_key=None):
        if _dispatch_key is not None:
            raise NotImplementedError("TorchDispatchMode(): _dispatch_key is not supported")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_dispatch_mode(self)
        return self

    def __exit__(self, *exception):
        _C._pop_dispatch_mode()

    @classmethod
    def push(cls, *args, **kwargs):
        """A new mode."""
        return cls(*args, **kwargs)
