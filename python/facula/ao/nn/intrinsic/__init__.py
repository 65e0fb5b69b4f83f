"""Several float modules in a row as one, which is quantized as one."""

from __future__ import annotations

from facula.nn import Sequential

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]


class _Fused(Sequential):
    """Modules that run one after the other and are quantized together."""


class ConvReLU1d(_Fused):
    """Conv1d and ReLU."""

    def __init__(self, conv, relu):
        super().__init__(conv, relu)


class ConvReLU2d(_Fused):
    """Conv2d and ReLU."""

    def __init__(self, conv, relu):
        super().__init__(conv, relu)


class ConvReLU3d(_Fused):
    """Conv3d and ReLU."""

    def __init__(self, conv, relu):
        super().__init__(conv, relu)


class LinearReLU(_Fused):
    """Linear and ReLU."""

    def __init__(self, linear, relu):
        super().__init__(linear, relu)
