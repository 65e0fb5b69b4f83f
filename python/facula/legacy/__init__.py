"""Modules and optimizers in the manner of Torch7, thin over today's."""

from facula import _missing


def __getattr__(name):
    return _missing.submodule(__name__, name)


def __dir__():
    return sorted({*globals(), "nn", "optim"})
