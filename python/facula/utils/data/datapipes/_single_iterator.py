"""A datapipe has one iterator at a time: a new one ends the one before."""

from __future__ import annotations

import functools
import inspect


class _Iterator:
    """Begins with its first item, and goes on while it is the newest of its datapipe."""

    def __init__(self, datapipe, make):
        self._datapipe, self._make = datapipe, make
        self._source = self._number = None

    def __iter__(self):
        return self

    def _begin(self):
        known = vars(self._datapipe)
        known["_iterator_number"] = self._number = known.get("_iterator_number", 0) + 1
        self._datapipe.reset()
        self._source = iter(self._make(self._datapipe))

    def __next__(self):
        if self._number is None:
            self._begin()
        if self._datapipe._iterator_number != self._number:
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created "
                f"from the same IterDataPipe: {described(self._datapipe)}: `.fork()` gives "
                "several readers of one datapipe"
            )
        try:
            return next(self._source)
        except StopIteration:
            raise
        except Exception as error:
            _say_where(error, self._datapipe)
            raise


def _say_where(error, datapipe):
    where = f"This exception is thrown by __iter__ of {described(datapipe)}"
    first = error.args[0] if error.args else ""
    if "thrown by __iter__" in str(first):
        return
    error.args = (f"{first}\n{where}", *error.args[1:])


def described(datapipe):
    """A datapipe's class with what it was made of."""
    names = list(inspect.signature(type(datapipe).__init__).parameters)[1:]
    known = {k: v for k, v in vars(datapipe).items() if k in names}
    shown = (f"{k}={getattr(v, '__name__', None) or v}" for k, v in known.items())
    return f"{type(datapipe).__name__}({', '.join(shown)})"


def hooked(cls):
    """Have a class's own __iter__ begin anew and end the iterator before."""
    original = cls.__dict__.get("__iter__")
    if original is None or getattr(original, "_is_hooked", False):
        return

    @functools.wraps(original)
    def __iter__(self):
        keeps_its_own = getattr(type(self), "_has_many_iterators", False)
        if keeps_its_own or hasattr(type(self), "__next__"):
            return original(self)
        return _Iterator(self, original)

    __iter__._is_hooked = True
    cls.__iter__ = __iter__
