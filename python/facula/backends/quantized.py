"""Engines of quantized operators: this build has none."""

import sys
from types import ModuleType


class _QuantizedModule(ModuleType):
    supported_engines = ["none"]

    @property
    def engine(self):
        """The engine in force."""
        return "none"

    @engine.setter
    def engine(self, name):
        if name not in self.supported_engines:
            raise RuntimeError(f"{name} is not a valid value for quantized engine")


sys.modules[__name__].__class__ = _QuantizedModule
