"""Tensors that a Module registers when they are assigned to it."""
from __future__ import annotations

import facula


class _ParameterMeta(type(facula.Tensor)):
    # A tensor subclass that was wrapped by Parameter() keeps its own type and is marked instead.
    def __instancecheck__(self, instance):
        if type.__instancecheck__(self, instance):
            return True
        return self is Parameter and isinstance(instance, facula.Tensor) and getattr(
            instance, "_is_param", False)


class Parameter(facula.Tensor, metaclass=_ParameterMeta):
    """A tensor that is a module's parameter: assigning it to a module registers it.

    Args:
        data: Tensor, any shape; an empty float tensor when None.
        requires_grad: whether gradients are wanted; True needs a float or complex dtype.

    Raises:
        RuntimeError: gradients wanted for an integer or bool dtype.

    Example:
        >>> w = facula.nn.Parameter(facula.ones(2))
        >>> w.requires_grad
        True
    """

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = facula.empty(0)
        if type(data) is facula.Tensor or type(data) is Parameter:
            return facula.Tensor._make_subclass(cls, data, requires_grad)
        marked = data.detach().requires_grad_(requires_grad)
        if type(marked) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires "
                "that detach() returns an instance of the same type, but return type "
                f"{type(marked).__name__} was found instead.")
        marked._is_param = True
        return marked

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        data = self.data.clone(memory_format=facula.preserve_format)
        memo[id(self)] = result = type(self)(data, self.requires_grad)
        return result

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto):
        from collections import OrderedDict

        from facula import _utils
        state = _utils._get_obj_state(self)
        args = (self.data, self.requires_grad, OrderedDict())
        if not state:
            return _utils._rebuild_parameter, args
        return _utils._rebuild_parameter_with_state, (*args, state)

    __torch_function__ = facula._C._disabled_torch_function_impl


class _BufferMeta(type(facula.Tensor)):
    def __instancecheck__(self, instance):
        if type.__instancecheck__(self, instance):
            return True
        return self is Buffer and isinstance(instance, facula.Tensor) and getattr(
            instance, "_is_buffer", False)


class Buffer(facula.Tensor, metaclass=_BufferMeta):
    """A tensor that is a module's buffer: assigning it to a module registers it.

    Args:
        data: Tensor, any shape and dtype; an empty float tensor when None.
        persistent: whether the buffer is part of the module's state_dict.

    The result keeps the type of `data`; only a mark tells it from other tensors.
    """

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = facula.empty(0)
        marked = data.detach().requires_grad_(data.requires_grad)
        marked.persistent = persistent
        marked._is_buffer = True
        return marked

    __torch_function__ = facula._C._disabled_torch_function_impl


class UninitializedTensorMixin:
    """Behaviour of a tensor whose shape is not yet known (`materialize` gives it one)."""

    _allowed = frozenset({
        "to", "half", "float", "double", "bfloat16", "char", "short", "int", "long", "cuda", "cpu",
        "is_floating_point", "copy_", "detach_", "detach", "requires_grad_", "is_complex",
        "__get__", "_has_compatible_shallow_copy_type"})

    def materialize(self, shape, device=None, dtype=None):
        """Give this tensor a shape (and device, dtype) and turn it into an ordinary one."""
        device = self.data.device if device is None else device
        dtype = self.data.dtype if dtype is None else dtype
        self.data = facula.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. "
            "This error usually happens in `load_state_dict` when trying to load an uninitialized "
            "parameter into an initialized one. "
            "Call `forward` to initialize the parameters before accessing their attributes.")

    def share_memory_(self):
        """Raise RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`.")

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, proto):
        return type(self), (self.requires_grad,)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in cls._allowed or type(func).__name__ == "method-wrapper":
            return super().__torch_function__(func, types, args, kwargs or {})
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you "
            "are using a `LazyModule` or explicitly manipulating "
            f"`torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call `forward` "
            "with a dummy batch to initialize the parameters before calling torch functions")


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is found at the first call of its lazy module."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        data = facula.empty(0, device=device, dtype=dtype)
        return facula.Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        memo[id(self)] = result = type(self)(
            self.requires_grad, self.data.device, self.data.dtype)
        return result


class UninitializedBuffer(UninitializedTensorMixin, facula.Tensor):
    """A buffer whose shape is found at the first call of its lazy module."""

    cls_to_become = facula.Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        data = facula.empty(0, device=device, dtype=dtype)
        result = facula.Tensor._make_subclass(cls, data, requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result


def is_lazy(param):
    """Whether `param` is an uninitialized parameter or buffer; returns a bool."""
    return isinstance(param, UninitializedTensorMixin)
