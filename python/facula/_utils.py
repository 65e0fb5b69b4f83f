"""Functions that pickles name, and small helpers shared by the Python package."""

from __future__ import annotations


def _rebuild_tensor(storage, storage_offset, size, stride):
    """Make a tensor over `storage` (typed) with the given geometry; returns a Tensor."""
    return _rebuilt("rebuild_tensor", storage, storage_offset, size, stride)


def _rebuild_tensor_v2(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None
):
    """Make a tensor as `_rebuild_tensor` and set requires_grad and hooks; returns a Tensor."""
    geometry = (storage, storage_offset, size, stride)
    return _rebuilt("rebuild_tensor_v2", *geometry, requires_grad, backward_hooks, metadata)


def _rebuild_tensor_v3(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None
):
    """Make a tensor of `dtype` over an untyped storage; returns a Tensor."""
    geometry = (storage, storage_offset, size, stride)
    return _rebuilt("rebuild_tensor_v3", *geometry, requires_grad, backward_hooks, dtype, metadata)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    """Make a tensor on the meta device; returns a Tensor."""
    return _rebuilt("rebuild_meta_tensor", dtype, size, stride, requires_grad)


def _rebuild_sparse_tensor(layout, data):
    """Make a sparse tensor of the parts that its layout has; returns a Tensor."""
    return _rebuilt("rebuild_sparse_tensor", layout, data)


def _rebuild_nested_tensor(buffer, sizes, strides, storage_offsets):
    """Make a nested tensor of layout strided of its elements; returns a Tensor."""
    return _rebuilt("rebuild_nested", buffer, sizes, strides, storage_offsets)


def _rebuild_qtensor(
    storage, storage_offset, size, stride, quantizer_params, requires_grad, backward_hooks
):
    """Make a quantized tensor over `storage` (typed); returns a Tensor."""
    geometry = (storage, storage_offset, size, stride)
    rest = (quantizer_params, requires_grad, backward_hooks)
    return _rebuilt("rebuild_quantized_tensor", *geometry, *rest)


def _rebuild_wrapper_subclass(
    cls, dtype, size, stride, storage_offset, layout, device, requires_grad
):
    """Make a tensor of a class that has a geometry but no memory; returns a Tensor."""
    place = (storage_offset, layout, device)
    return _rebuilt("rebuild_wrapper_subclass", cls, dtype, size, stride, *place, requires_grad)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """Make a Parameter over `data`; returns a Parameter."""
    return _rebuilt("rebuild_parameter", data, requires_grad, backward_hooks)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    """Make a Parameter over `data` with Python attributes `state`; returns a Parameter."""
    param = _rebuild_parameter(data, requires_grad, backward_hooks)
    return _set_obj_state(param, state)


def _rebuilt(name, *args):
    from facula.serialization import _rebuild

    return getattr(_rebuild, name)(*args)


def _set_obj_state(obj, state):
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    for items in (attributes, slots):
        for name, value in (items or {}).items():
            setattr(obj, name, value)
    return obj


def _get_obj_state(obj):
    """What a pickle keeps of the Python attributes of `obj`; returns a dict, or None."""
    return dict(obj.__dict__) if getattr(obj, "__dict__", None) else None


class CallSignature:
    """What `inspect.signature` finds of classes and objects whose calls are written in C.

    `__signature__ = CallSignature("*args, **kwargs", of_instances=True)` speaks for the objects of
    a class, as long as they have no other `__call__` than `call` says; without `of_instances` it
    speaks for the class.
    """

    def __init__(self, text, *, of_instances, call=None):
        self._text, self._of_instances, self._call = text, of_instances, call

    def __get__(self, instance, owner):
        is_other = self._call is not None and owner.__call__ is not self._call
        if (instance is not None) != self._of_instances or is_other:
            raise AttributeError("__signature__")
        from facula._methods import signature_of

        return signature_of(f"({self._text})")


class KeyErrorMessage(str):
    """A text that repr() shows as it is: KeyError shows the repr of its argument."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


class ExceptionWrapper:
    """An exception that is raised in another thread or process than where it came up.

    Args:
        exc_info (tuple): type, value and traceback; those being handled where None.
        where (str): where it came up, for the text.
    """

    def __init__(self, exc_info=None, where="in background"):
        import sys
        import traceback

        if exc_info is None:
            exc_info = sys.exc_info()
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self):
        """Raise an exception of the same type, whose text has the first one's traceback."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)
        try:
            raised = self.exc_type(text)
        except Exception:  # its constructor takes other arguments
            raise RuntimeError(text) from None
        raise raised
