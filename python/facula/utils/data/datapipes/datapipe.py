"""The bases of datapipes: iterated ones and indexed ones, and the batches they hand on."""

from __future__ import annotations

import functools

from facula.utils.data.dataset import Dataset, IterableDataset

from ._single_iterator import hooked

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]


class _Piped:
    """What both kinds have: functions by name, and hooks of pickling."""

    functions: dict
    reduce_ex_hook = getstate_hook = None

    def __getattr__(self, name):
        from . import iter, map  # noqa: F401  these register the functions

        if name in type(self).functions:
            return functools.partial(type(self).functions[name], self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @classmethod
    def register_function(cls, function_name, function):
        """Make `datapipe.function_name(...)` call a function with the datapipe first."""
        cls.functions[function_name] = function

    def __reduce_ex__(self, *args, **kwargs):
        if type(self).reduce_ex_hook is not None:
            try:
                return type(self).reduce_ex_hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(*args, **kwargs)

    def __getstate__(self):
        state = self.__dict__
        if type(self).getstate_hook is not None:
            return type(self).getstate_hook(state)
        return {k: v for k, v in state.items() if k not in ("_iterator_number",)}

    def __setstate__(self, state):
        self.__dict__.update(state)

    @classmethod
    def set_getstate_hook(cls, hook_fn):
        """Have a function of the state decide what is pickled; None takes it back."""
        base = _base(cls)
        if base.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("set_getstate_hook(): there is one already; set None first")
        base.getstate_hook = hook_fn

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn):
        """Have a function decide how datapipes are pickled; None takes it back."""
        base = _base(cls)
        if base.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("set_reduce_ex_hook(): there is one already; set None first")
        base.reduce_ex_hook = hook_fn

    def __str__(self):
        return type(self).__qualname__

    __repr__ = __str__

    def __dir__(self):
        return [*super().__dir__(), *type(self).functions]


def _base(cls):
    return MapDataPipe if issubclass(cls, MapDataPipe) else IterDataPipe


def _register(cls, function_name, made):
    if function_name in cls.functions:
        raise Exception(
            f"Unable to add DataPipe function name {function_name} as it is already taken"
        )

    @functools.wraps(made, assigned=("__doc__",), updated=())
    def function(source, *args, **kwargs):
        return made(source, *args, **kwargs)

    cls.functions[function_name] = function


class IterDataPipe(_Piped, IterableDataset):
    """Base of datapipes that are iterated: define `__iter__`, and `__len__` where it is known.

    A datapipe has one iterator at a time: a new one ends the one before.

    Example:
        >>> from facula.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(5)).map(float).batch(2))
        [[0.0, 1.0], [2.0, 3.0], [4.0]]
    """

    functions: dict = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        hooked(cls)

    def reset(self):
        """Called when an iterator is made; subclasses set their state back."""

    @classmethod
    def register_datapipe_as_function(
        cls, function_name, cls_to_register, enable_df_api_tracing=False
    ):
        """Make `datapipe.function_name(...)` build a datapipe over it."""
        _register(cls, function_name, cls_to_register)


class DFIterDataPipe(IterDataPipe):
    """Base of datapipes whose items are data frames."""


class MapDataPipe(_Piped, Dataset):
    """Base of datapipes that are indexed: define `__getitem__` and `__len__`.

    Example:
        >>> from facula.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper([3, 4, 5]).map(float)[2]
        5.0
    """

    functions: dict = {}

    @classmethod
    def register_datapipe_as_function(cls, function_name, cls_to_register):
        """Make `datapipe.function_name(...)` build a datapipe over it."""
        _register(cls, function_name, cls_to_register)


class DataChunk(list):
    """A batch of items.

    Args:
        items (iterable): the items.
    """

    def __init__(self, items):
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent=""):
        """The items in brackets, behind `indent`."""
        return indent + "[" + ", ".join(map(str, self)) + "]"

    def __iter__(self):
        yield from super().__iter__()

    def raw_iterator(self):
        """The items as they are."""
        yield from self.items
