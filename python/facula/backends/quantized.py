"""Engines of quantized operators: one set of kernels of facula's own serves all names."""

import sys
from types import ModuleType


class _QuantizedModule(ModuleType):
    supported_engines = ["qnnpack", "onednn", "x86", "fbgemm"]
    _engine = "x86"

    @property
    def engine(self):
        """The engine in force: it decides on default configurations alone."""
        return self._engine

    @engine.setter
    def engine(self, name):
        if name not in self.supported_engines:
            raise RuntimeError(f"{name} is not a valid value for quantized engine")
        self._engine = name


sys.modules[__name__].__class__ = _QuantizedModule
