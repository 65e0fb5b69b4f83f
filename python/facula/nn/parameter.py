"""Tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

import facula
from facula import _capture


class _Marked(type(facula.Tensor)):
    """Metaclass: tensors of other types belong to the class too when they bear its mark."""

    def __instancecheck__(self, instance):
        if super().__instancecheck__(instance):
            return True
        mark = self.__dict__.get("_mark")
        return (
            mark is not None
            and isinstance(instance, facula.Tensor)
            and getattr(instance, mark, False)
        )


def _or_empty(data):
    return facula.empty(0) if data is None else data


def _copied_once(tensor, memo, arguments):
    """The copy of `tensor` that `memo` knows, else a new one of its type; returns it."""
    copy = memo.get(id(tensor))
    if copy is None:
        copy = memo[id(tensor)] = type(tensor)(*arguments())
    return copy


class Parameter(facula.Tensor, metaclass=_Marked):
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

    # A tensor subclass that Parameter() wraps keeps its own type and is marked instead.
    _mark = "_is_param"

    def __new__(cls, data=None, requires_grad=True):
        _capture.finish("a Parameter is made")
        data = _or_empty(data)
        if type(data) in (facula.Tensor, Parameter):
            return facula.Tensor._make_subclass(cls, data, requires_grad)
        marked = data.detach().requires_grad_(requires_grad)
        if type(marked) is not type(data):
            raise RuntimeError(
                f"Parameter: detach() of a {type(data).__name__} must return one; got "
                f"{type(marked).__name__}"
            )
        marked._is_param = True
        return marked

    def __deepcopy__(self, memo):
        return _copied_once(
            self,
            memo,
            lambda: (self.data.clone(memory_format=facula.preserve_format), self.requires_grad),
        )

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


class Buffer(facula.Tensor, metaclass=_Marked):
    """A tensor that is a module's buffer: assigning it to a module registers it.

    Args:
        data: Tensor, any shape and dtype; an empty float tensor when None.
        persistent: whether the buffer is part of the module's state_dict.

    The result keeps the type of `data`; only a mark tells it from other tensors.
    """

    _mark = "_is_buffer"

    def __new__(cls, data=None, *, persistent=True):
        data = _or_empty(data)
        marked = data.detach().requires_grad_(data.requires_grad)
        marked.persistent = persistent
        marked._is_buffer = True
        return marked

    __torch_function__ = facula._C._disabled_torch_function_impl


class UninitializedTensorMixin:
    """Behaviour of a tensor whose shape is not yet known (`materialize` gives it one)."""

    _allowed = frozenset(
        {
            "to",
            "half",
            "float",
            "double",
            "bfloat16",
            "char",
            "short",
            "int",
            "long",
            "cuda",
            "cpu",
            "is_floating_point",
            "copy_",
            "detach_",
            "detach",
            "requires_grad_",
            "is_complex",
            "__get__",
            "_has_compatible_shallow_copy_type",
        }
    )

    def materialize(self, shape, device=None, dtype=None):
        """Give this tensor a shape (and device, dtype) and turn it into an ordinary one."""
        # Not a method of the data: that is still uninitialized, and refuses.
        self.data = facula.empty(
            shape,
            device=self.data.device if device is None else device,
            dtype=self.data.dtype if dtype is None else dtype,
        )
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "an uninitialized parameter has no shape yet; the module's first forward() gives it one"
        )

    def share_memory_(self):
        """Raise RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "an uninitialized parameter has no memory to share; the module's first forward() "
            "gives it some"
        )

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
            f"{func}: got a {cls.__name__}, which has no value before the lazy module's first "
            "forward()"
        )


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is found at the first call of its lazy module."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        data = facula.empty(0, device=device, dtype=dtype)
        return facula.Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo):
        return _copied_once(
            self, memo, lambda: (self.requires_grad, self.data.device, self.data.dtype)
        )


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
