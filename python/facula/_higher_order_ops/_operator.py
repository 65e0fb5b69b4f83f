"""HigherOrderOperator: what stands in graphs for a call with functions among its arguments."""

from __future__ import annotations

import importlib


class HigherOrderOperator:
    """An operator that takes functions, of the namespace `ops.higher_order`.

    Args:
        name (str): its name.
        run (callable): computes it.
    """

    def __init__(self, name, run):
        self._name, self._run = name, run
        self.__name__ = self.__qualname__ = name
        self.__module__ = f"{__package__.partition('.')[0]}.ops.higher_order"
        self.__doc__ = run.__doc__

    namespace = "higher_order"

    def name(self):
        """Its name."""
        return self._name

    def __call__(self, *args, **kwargs):
        return self._run(*args, **kwargs)

    def __str__(self):
        return self._name

    def __repr__(self):
        return f"<HigherOrderOperator {self._name}>"

    def __reduce__(self):
        return operator_named, (self._name,)

    def __deepcopy__(self, memo):
        return self


_PLACES = {
    "cond": "cond",
    "map_impl": "map",
    "out_dtype": "out_dtype",
    "scan": "scan",
    "while_loop": "while_loop",
}


def operator_named(name):
    """The operator of a name.

    Raises:
        AttributeError: there is none.
    """
    if name not in _PLACES:
        raise AttributeError(f"'_HigherOrderNamespace' object has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__package__}.{_PLACES[name]}"), f"{name}_op")
