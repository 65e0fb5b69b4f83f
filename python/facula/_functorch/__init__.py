"""Programs compiled ahead of time, forward and backward: what `functorch.compile` consists of."""

from __future__ import annotations

from facula import _missing


def __getattr__(name):
    return _missing.submodule(__name__, name)
