"""Names of parts of `distributed` that are to come: packages import them long before using them."""

from __future__ import annotations


def _refuse(full):
    raise NotImplementedError(
        f"{full}(): expected a part of distributed that this version has; it is not there yet"
    )


def _make_class(module, name):
    def __init__(self, *args, **kwargs):
        _refuse(f"{module}.{name}")

    return type(name, (), {"__init__": __init__, "__module__": module, "__doc__": "Not there yet."})


def _make_function(module, name):
    def planned(*args, **kwargs):
        """Not there yet: raises NotImplementedError."""
        _refuse(f"{module}.{name}")

    planned.__name__ = planned.__qualname__ = name
    planned.__module__ = module
    return planned


def planned(namespace, names):
    """Puts classes and functions into a module that raise NotImplementedError when they are called.

    Args:
        namespace (dict): the module's `globals()`.
        names (str): separated by blanks; capitalised ones become classes.

    Example:
        >>> here = {"__name__": "facula.somewhere"}
        >>> planned(here, "Reader save")
        >>> sorted(here)
        ['Reader', '__name__', 'save']
    """
    module = namespace["__name__"]
    for name in names.split():
        is_class = name.lstrip("_")[0].isupper()
        namespace[name] = (_make_class if is_class else _make_function)(module, name)
