"""Modules whose parameters nobody has filled."""

from __future__ import annotations

import inspect

import facula


def skip_init(module_cls, *args, **kwargs):
    """Make a module without filling its parameters, for those that are filled otherwise.

    Args:
        module_cls: class of the module, whose constructor takes `device`.
        args, kwargs: of the constructor.

    Returns:
        The module, on the device asked for.

    Raises:
        RuntimeError: no Module class, or one whose constructor takes no `device`.

    Example:
        >>> facula.nn.utils.skip_init(facula.nn.Linear, 5, 2)
        Linear(in_features=5, out_features=2, bias=True)
    """
    if not issubclass(module_cls, facula.nn.Module):
        raise RuntimeError(f"skip_init(): expected a Module class; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(f"skip_init(): {module_cls.__name__}() takes no device")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
