"""What modules that train with fake-quantized weights share."""

from __future__ import annotations


def check_qconfig(qconfig):
    """Raise AssertionError where a module is made without a configuration."""
    if not qconfig:
        raise AssertionError("expected a qconfig, which says how the weight is rounded; got none")


def check_float(cls, mod, kind=None):
    """Raise AssertionError where a float module is of another class or has no configuration."""
    kind = kind or cls._FLOAT_MODULE
    if type(mod) is not kind:
        raise AssertionError(
            f"qat.{cls.__name__}.from_float(): expected a {kind.__name__}; got {type(mod).__name__}"
        )
    check_configured(mod)


def check_configured(mod):
    """Raise AssertionError where a float module has no configuration."""
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not mod.qconfig:
        raise AssertionError("Input float module must have a valid qconfig")
