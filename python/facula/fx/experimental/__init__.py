"""What packages ask of fx's tracing below the level of modules."""

from __future__ import annotations

from facula import _missing


def __getattr__(name):
    return _missing.submodule(__name__, name)
