"""What modules made from float ones share: checks of these, and the options they are made with."""

from __future__ import annotations

from facula.nn.utils.parametrize import type_before_parametrizations

CONV_OPTIONS = (
    "in_channels",
    "out_channels",
    "kernel_size",
    "stride",
    "padding",
    "dilation",
    "groups",
    "padding_mode",
)
LINEAR_OPTIONS = ("in_features", "out_features")


def options_of(module, names):
    """The arguments by which a module like `module` is made.

    Args:
        module (Module): with `bias`. names (sequence of str): of the other arguments.

    Returns:
        dict
    """
    options = {name: getattr(module, name) for name in names}
    return {**options, "bias": module.bias is not None}


def check_float(name, mod, kinds, none_is_default=False):
    """Raise AssertionError where a float module is of another class or has no configuration.

    Args:
        name (str): of the class that is made. mod (Module). kinds (type or tuple of type).
        none_is_default (bool): whether a `qconfig` of None will do.
    """
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    kind = type_before_parametrizations(mod)
    if kind not in kinds:
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise AssertionError(f"{name}.from_float(): expected a {wanted}; got {kind.__name__}")
    if not (getattr(mod, "qconfig", None) or (none_is_default and hasattr(mod, "qconfig"))):
        raise AssertionError(f"{name}.from_float(): expected a module with a qconfig; got none")
