"""Passes over graphs of operators."""

from __future__ import annotations

from facula import _missing


def __getattr__(name):
    return _missing.submodule(__name__, name)
