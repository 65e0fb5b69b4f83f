"""The parts of `aot_autograd`: the program of a function and its gradients, and how it is run."""

from __future__ import annotations

from facula import _missing


def __getattr__(name):
    return _missing.submodule(__name__, name)
