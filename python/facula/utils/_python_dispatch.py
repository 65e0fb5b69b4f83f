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
        """A new mode; the class itself is called nowadays."""
        import warnings

        warnings.warn(
            "push() is not needed: `with Mode():` does the same",
            stacklevel=2,
        )
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode_stack():
    """The modes of this thread that are in Python, the innermost last; returns a list."""
    modes = [_C._dispatch_mode_at(i) for i in range(_C._dispatch_mode_depth())]
    return [mode for mode in modes if mode is not None]


def _get_current_dispatch_mode():
    """The innermost mode, or None."""
    return (_get_current_dispatch_mode_stack() or [None])[-1]


def is_in_torch_dispatch_mode():
    """Whether a mode is on."""
    return bool(_get_current_dispatch_mode_stack())


def is_traceable_wrapper_subclass_type(t):
    """Whether a class of tensors has `__tensor_flatten__` and `__tensor_unflatten__`."""
    return (
        issubclass(t, _C.Tensor)
        and t is not _C.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(t):
    """Whether an object is a tensor of such a class."""
    return isinstance(t, _C.Tensor) and is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """The tensor with each inner one replaced by `callback(name, inner)`.

    Args:
        t: of a class with `__tensor_flatten__`.
        callback: gives a tensor of the same size for each inner one.
        outer_size, outer_stride: of the result; those of `t` unless given.
    """
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    made = type(t).__tensor_unflatten__(inner, context, size, stride)
    if tuple(made.shape) != tuple(size):
        raise AssertionError(
            f"transform_subclass(): expected a result of size {tuple(size)}; got "
            f"{tuple(made.shape)}"
        )
    return made
