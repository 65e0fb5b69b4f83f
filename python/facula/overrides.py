"""Objects and modes that take over facula's functions: `__torch_function__`."""
from __future__ import annotations

from facula import _C

has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic
handle_torch_function = _C._handle_torch_function

_NOWRAP = None


def get_default_nowrap_functions():
    """Functions whose results stay plain tensors when a subclass is given; returns a set."""
    global _NOWRAP
    if _NOWRAP is None:
        names = ("_base", "grad", "_grad")
        _NOWRAP = {getattr(_C.TensorBase, name).__get__ for name in names}
    return _NOWRAP


def is_tensor_like(inp):
    """Whether the object is a Tensor or has `__torch_function__`."""
    return type(inp) is _C.Tensor or hasattr(inp, "__torch_function__")


def resolve_name(f):
    """The qualified name of a function that overrides are told of."""
    module, name = getattr(f, "__module__", None), getattr(f, "__qualname__", None)
    return f"{module}.{name}" if name else str(f)


def is_tensor_method_or_property(func):
    """Whether the function is a method or property of Tensor."""
    name = getattr(func, "__name__", None)
    return name == "__get__" or getattr(_C.Tensor, name or "", None) is func


def wrap_torch_function(dispatcher):
    """Decorator: the function is overridable; `dispatcher` gives the arguments that count."""
    from functools import wraps

    def decorate(function):
        @wraps(function)
        def run(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(run, relevant, *args, **kwargs)
            return function(*args, **kwargs)
        return run

    return decorate


class TorchFunctionMode:
    """Context manager that sees every overridable function called within it.

    A subclass defines `__torch_function__(self, func, types, args=(), kwargs=None)`.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, *exception):
        _C._pop_torch_function_stack()

    @classmethod
    def push(cls, *args, **kwargs):
        """A new mode."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_overloaded_args(relevant_args):
    """The arguments with overrides, in the order of their precedence; one for each type."""
    found = []
    for arg in relevant_args:
        if not has_torch_function_unary(arg) or any(type(arg) is type(f) for f in found):
            continue
        at = next((i for i, f in enumerate(found) if isinstance(arg, type(f))), len(found))
        found.insert(at, arg)
    return found
