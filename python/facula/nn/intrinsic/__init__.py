"""The older name of `facula.ao.nn.intrinsic`."""

from __future__ import annotations

import facula.ao.nn.intrinsic as _home
from facula import _missing


def __getattr__(name):
    if name.startswith("__"):
        raise _missing.attribute(__name__, name)
    if hasattr(_home, name):
        return getattr(_home, name)
    return _missing.submodule(__name__, name)


def __dir__():
    return sorted({*globals(), *dir(_home)})
