"""Objects and modes that take over facula's functions: `__torch_function__`."""

from __future__ import annotations

import functools

from facula import _C

__all__ = [
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "resolve_name",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "wrap_torch_function",
    "enable_reentrant_dispatch",
    "redispatch_function",
]

has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic
handle_torch_function = _C._handle_torch_function


@functools.lru_cache(None)
def get_default_nowrap_functions():
    """Functions whose results stay plain tensors when a subclass is given; returns a set."""
    names = ("_base", "grad", "_grad")
    return {getattr(_C.TensorBase, name).__get__ for name in names}


@functools.lru_cache(None)
def _survey():
    from facula._overridable import overridable_functions

    return overridable_functions()


def get_overridable_functions():
    """The functions that `__torch_function__` is told of; returns a dict.

    Keys are modules and the class Tensor, with lists of functions, and the properties of Tensor,
    with lists of their getters.
    """
    return {place: list(functions) for place, functions in _survey()[0].items()}


@functools.lru_cache(None)
def get_ignored_functions():
    """The public functions and methods that are not overridable; returns a set."""
    return _survey()[1]


@functools.lru_cache(None)
def get_testing_overrides():
    """For each overridable function one of the same signature that returns -1; returns a dict."""
    from facula._overridable import testing_overrides

    return testing_overrides(_survey()[0])


def is_tensor_like(inp):
    """Whether the object is a Tensor or has `__torch_function__`."""
    return type(inp) is _C.Tensor or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func):
    """Whether the function is a method of Tensor or the getter or setter of a property."""
    name = getattr(func, "__name__", None)
    if name in ("__get__", "__set__"):
        return True
    return name is not None and getattr(_C.Tensor, name, None) is func


def resolve_name(f):
    """The qualified name of a function that overrides are told of.

    Returns:
        "facula.add", "facula.Tensor.add", "facula.Tensor.grad.__get__", "aten.add.Tensor"; None for
        what is no function of facula.
    """
    if isinstance(f, (_C.OpOverload, _C.OpOverloadPacket)):
        return str(f)
    package = _C.Tensor.__module__
    owner = getattr(f, "__self__", None)
    if f.__class__.__name__ == "method-wrapper" and hasattr(owner, "__objclass__"):
        return f"{package}.Tensor.{owner.__name__}.{f.__name__}"
    name = getattr(f, "__name__", None)
    if getattr(_C.Tensor, name or "", None) is f:
        return f"{package}.Tensor.{name}"
    module = getattr(f, "__module__", None) or ""
    if module.partition(".")[0] != package:
        return None
    return f"{package}{_PUBLIC_PLACES.get(module[len(package) :], module[len(package) :])}.{name}"


_PUBLIC_PLACES = {"._C._nn": ".nn.functional", "._C": ""}


def wrap_torch_function(dispatcher):
    """Decorator: the function is overridable; `dispatcher` gives the arguments that count.

    Args:
        dispatcher: called with the function's arguments; returns an iterable of those that may
            have a `__torch_function__`.

    Example:
        >>> @facula.overrides.wrap_torch_function(lambda a: (a,))
        ... def twice(a):
        ...     return a + a
    """

    def decorate(function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(run, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return run

    return decorate


class enable_reentrant_dispatch:
    """Context manager: layers above `__torch_dispatch__`, autograd among them, are on within it."""

    def __enter__(self):
        self._before = _C._set_excluded_layers(0)
        return self

    def __exit__(self, *exception):
        _C._set_excluded_layers(self._before)


def redispatch_function(func, types, args, kwargs):
    """Call a function from `__torch_function__` without being asked again for this call.

    Functions that `func` itself calls are told of as usual, where they are written in Python.

    Args:
        func, types, args, kwargs: what `__torch_function__` was given.
    """
    inner = getattr(func, "__wrapped__", None)
    if inner is not None:
        return inner(*args, **(kwargs or {}))
    with _C.DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


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
        """A new mode; the class itself is called nowadays."""
        import warnings

        warnings.warn(
            "push() is not needed: `with Mode():` does the same",
            stacklevel=2,
        )
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _len_torch_function_stack():
    return _C._len_torch_function_stack()


def _get_current_function_mode():
    depth = _C._len_torch_function_stack()
    return _C._get_function_stack_at(depth - 1) if depth else None


def _get_current_function_mode_stack():
    return [_C._get_function_stack_at(i) for i in range(_C._len_torch_function_stack())]


def _get_overloaded_args(relevant_args, get_type_fn=type):
    """The arguments with overrides, in the order of their precedence; one for each type."""
    found = []
    for arg in relevant_args:
        kind = get_type_fn(arg)
        if not has_torch_function_unary(arg) or any(kind is get_type_fn(f) for f in found):
            continue
        at = next((i for i, f in enumerate(found) if issubclass(kind, get_type_fn(f))), len(found))
        found.insert(at, arg)
    return found
