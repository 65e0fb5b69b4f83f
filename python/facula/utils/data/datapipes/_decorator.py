"""Decorators of datapipes: names as functions, what is not deterministic, types of items."""

from __future__ import annotations

import functools
import inspect
import typing

from .datapipe import IterDataPipe, MapDataPipe

__all__ = [
    "argument_validation",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
]


class functional_datapipe:
    """Class decorator: `datapipe.name(...)` builds this datapipe over another.

    Args:
        name (str): the name.
        enable_df_api_tracing (bool): accepted; data frames are not traced.

    Raises:
        TypeError: the class is no datapipe.
        Exception: the name is taken.
    """

    def __init__(self, name, enable_df_api_tracing=False):
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls):
        for base in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, base):
                base.register_datapipe_as_function(self.name, cls)
                return cls
        raise TypeError(f"functional_datapipe(): expected a class of datapipes; got {cls!r}")


_is_determined = False


class guaranteed_datapipes_determinism:
    """Context manager: in its block, datapipes that are not deterministic raise TypeError."""

    def __init__(self):
        global _is_determined
        self.prev = _is_determined
        _is_determined = True

    def __enter__(self):
        pass

    def __exit__(self, exc_type, exc_value, traceback):
        global _is_determined
        _is_determined = self.prev


class non_deterministic:
    """Class decorator: instances give another order each time.

    Args:
        arg: the class; or a function of the constructor's arguments that says whether an instance
            is such.
    """

    def __init__(self, arg):
        is_pipe = isinstance(arg, type) and issubclass(arg, IterDataPipe)
        if not is_pipe and not callable(arg):
            raise TypeError(f"non_deterministic(): expected a class or a function; got {arg!r}")
        self.cls = arg if is_pipe else None
        self.deterministic_fn = None if is_pipe else arg

    def __call__(self, *args, **kwargs):
        if self.cls is not None:
            self._check(self.cls)
            return self.cls(*args, **kwargs)
        self.cls = args[0]
        return self.deterministic_wrapper_fn

    def deterministic_wrapper_fn(self, *args, **kwargs):
        """An instance, unless it is not deterministic and must be."""
        if self.deterministic_fn(*args, **kwargs):
            self._check(self.cls)
        return self.cls(*args, **kwargs)

    @staticmethod
    def _check(cls):
        if _is_determined:
            raise TypeError(f"{cls.__name__} is not deterministic, and datapipes must be here")


def _is_pipe_type(hint):
    origin = typing.get_origin(hint) or hint
    return isinstance(origin, type) and issubclass(origin, (IterDataPipe, MapDataPipe))


def argument_validation(f):
    """Function decorator: arguments annotated as datapipes must be such; TypeError if not."""
    signature = inspect.signature(f)

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        hints = typing.get_type_hints(f)
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            hint = hints.get(name)
            kind = typing.get_origin(hint) or hint
            if hint is not None and _is_pipe_type(hint) and not isinstance(value, kind):
                raise TypeError(
                    f"Expected argument '{name}' as a {kind.__name__}; got {type(value).__name__}"
                )
        return f(*args, **kwargs)

    return wrapper


_validates = True


class runtime_validation_disabled:
    """Context manager: in its block, types of items are not checked."""

    def __init__(self):
        global _validates
        self.prev = _validates
        _validates = False

    def __enter__(self):
        pass

    def __exit__(self, exc_type, exc_value, traceback):
        global _validates
        _validates = self.prev


def _item_type(cls):
    for base in getattr(cls, "__orig_bases__", ()):
        arguments = typing.get_args(base)
        if _is_pipe_type(base) and arguments:
            kind = typing.get_origin(arguments[0]) or arguments[0]
            return kind if isinstance(kind, type) else None
    return None


def runtime_validation(f):
    """Decorator of `__iter__`: items must be of the type the class names, `IterDataPipe[int]`.

    Raises:
        TypeError: it decorates another method.
        RuntimeError: on iteration, an item is of another type.
    """
    if f.__name__ != "__iter__":
        raise TypeError(f"runtime_validation(): expected `__iter__`; got {f.__name__}")

    @functools.wraps(f)
    def wrapper(self):
        kind = _item_type(type(self))
        for item in f(self):
            if _validates and kind is not None and not isinstance(item, kind):
                raise RuntimeError(
                    f"Expected an instance as subtype of {kind}, but found {item}({type(item)})"
                )
            yield item

    return wrapper
