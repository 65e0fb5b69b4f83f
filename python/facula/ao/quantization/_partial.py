"""Factories of observers with some of their arguments given."""

from __future__ import annotations

from functools import partial


class PartialWrapper:
    """A factory with arguments given; some of them are called anew for each object."""

    def __init__(self, factory):
        self.p, self.callable_args = factory, {}

    def __call__(self, *args, **keywords):
        for name, make in self.callable_args.items():
            keywords.setdefault(name, make())
        return self.p(*args, **keywords)

    def __repr__(self):
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs):
        """A factory with these arguments given too."""
        return with_args(self, **kwargs)

    def with_callable_args(self, **kwargs):
        """A factory that calls these for the arguments' values."""
        made = PartialWrapper(self.p)
        made.callable_args = {**self.callable_args, **kwargs}
        return made


def with_args(factory, **kwargs):
    """A factory with arguments given.

    Example:
        >>> make = facula.ao.quantization.MinMaxObserver.with_args(dtype=facula.qint8)
        >>> make().dtype
        torch.qint8
    """
    inner = factory.p if isinstance(factory, PartialWrapper) else factory
    made = PartialWrapper(partial(inner, **kwargs))
    if isinstance(factory, PartialWrapper):
        made.callable_args = dict(factory.callable_args)
    return made


def with_callable_args(factory, **kwargs):
    """A factory that calls these for the arguments' values, anew for each object."""
    return PartialWrapper(partial(factory)).with_callable_args(**kwargs)
