"""The borders of the quantized part of a model; before conversion, tensors pass as they are."""

from __future__ import annotations

import facula  # noqa: F401  (examples)
from facula.nn import Module

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


class QuantStub(Module):
    """Where floats become quantized numbers, once the model is converted.

    Args:
        qconfig: how; of the module around it where it is not given.

    Example:
        >>> QuantStub()(facula.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        """The tensor itself."""
        return x


class DeQuantStub(QuantStub):
    """Where quantized numbers become floats, once the model is converted."""


class QuantWrapper(Module):
    """A module between the two borders.

    Args:
        module (Module): what is to be quantized.
    """

    def __init__(self, module):
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant, self.dequant = QuantStub(qconfig), DeQuantStub(qconfig)
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X):
        """What the module gives, through both borders."""
        return self.dequant(self.module(self.quant(X)))
