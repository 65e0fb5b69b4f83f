"""What modules that train with fake-quantized weights share."""

from __future__ import annotations


def check_qconfig(qconfig):
    """Raise AssertionError where a module is made without a configuration."""
    if not qconfig:
        raise AssertionError("expected a qconfig, which says how the weight is rounded; got none")
