"""Keyword arguments of factories that layers hand through."""

from __future__ import annotations


def factory_kwargs(kwargs):
    """The device, dtype and memory_format of `kwargs`, also out of its `factory_kwargs` entry.

    Args:
        kwargs: dict of keyword arguments, or None.

    Returns:
        A dict for a factory function.

    Raises:
        TypeError: an unknown key, or one that is given twice.
    """
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    unknown = kwargs.keys() - simple - {"factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    nested = dict(kwargs.get("factory_kwargs", {}))
    for key in simple & kwargs.keys():
        if key in nested:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        nested[key] = kwargs[key]
    return nested
