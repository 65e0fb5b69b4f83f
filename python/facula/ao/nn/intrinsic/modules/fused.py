"""Several float modules in a row as one, which is quantized as one."""

from __future__ import annotations

from facula import nn
from facula.nn.utils.parametrize import type_before_parametrizations

__all__ = [
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearReLU",
    "ConvBn1d",
    "ConvBn2d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBn3d",
    "ConvBnReLU3d",
    "BNReLU2d",
    "BNReLU3d",
    "LinearBn1d",
    "LinearLeakyReLU",
    "LinearTanh",
    "ConvAdd2d",
    "ConvAddReLU2d",
]


class _FusedModule(nn.Sequential):
    """Modules that run one after the other and are quantized together."""

    _kinds = ()

    def _check_kinds(self, *parts):
        found = [type_before_parametrizations(part) for part in parts]
        if any(kind is not wanted for kind, wanted in zip(found, self._kinds, strict=False)):
            names = " and ".join(kind.__name__ for kind in found)
            wanted = " and ".join(kind.__name__ for kind in self._kinds)
            raise AssertionError(f"Incorrect types for input modules: {names}; expected {wanted}")


class _ConvReLU(_FusedModule):
    def __init__(self, conv, relu):
        self._check_kinds(conv, relu)
        super().__init__(conv, relu)


class _ConvBn(_FusedModule):
    def __init__(self, conv, bn):
        self._check_kinds(conv, bn)
        super().__init__(conv, bn)


class _ConvBnReLU(_FusedModule):
    def __init__(self, conv, bn, relu):
        self._check_kinds(conv, bn, relu)
        super().__init__(conv, bn, relu)


class _BNReLU(_FusedModule):
    def __init__(self, batch_norm, relu):
        self._check_kinds(batch_norm, relu)
        super().__init__(batch_norm, relu)


class ConvReLU1d(_ConvReLU):
    """Conv1d and ReLU.

    Example:
        >>> from facula.ao.nn.intrinsic import ConvReLU1d
        >>> len(ConvReLU1d(nn.Conv1d(1, 1, 1), nn.ReLU()))
        2
    """

    _kinds = (nn.Conv1d, nn.ReLU)


class ConvReLU2d(_ConvReLU):
    """Conv2d and ReLU."""

    _kinds = (nn.Conv2d, nn.ReLU)


class ConvReLU3d(_ConvReLU):
    """Conv3d and ReLU."""

    _kinds = (nn.Conv3d, nn.ReLU)


class ConvBn1d(_ConvBn):
    """Conv1d and BatchNorm1d, for training."""

    _kinds = (nn.Conv1d, nn.BatchNorm1d)


class ConvBn2d(_ConvBn):
    """Conv2d and BatchNorm2d, for training."""

    _kinds = (nn.Conv2d, nn.BatchNorm2d)


class ConvBn3d(_ConvBn):
    """Conv3d and BatchNorm3d, for training."""

    _kinds = (nn.Conv3d, nn.BatchNorm3d)


class ConvBnReLU1d(_ConvBnReLU):
    """Conv1d, BatchNorm1d and ReLU, for training."""

    _kinds = (nn.Conv1d, nn.BatchNorm1d, nn.ReLU)


class ConvBnReLU2d(_ConvBnReLU):
    """Conv2d, BatchNorm2d and ReLU, for training."""

    _kinds = (nn.Conv2d, nn.BatchNorm2d, nn.ReLU)


class ConvBnReLU3d(_ConvBnReLU):
    """Conv3d, BatchNorm3d and ReLU, for training."""

    _kinds = (nn.Conv3d, nn.BatchNorm3d, nn.ReLU)


class BNReLU2d(_BNReLU):
    """BatchNorm2d and ReLU."""

    _kinds = (nn.BatchNorm2d, nn.ReLU)


class BNReLU3d(_BNReLU):
    """BatchNorm3d and ReLU."""

    _kinds = (nn.BatchNorm3d, nn.ReLU)


class LinearReLU(_FusedModule):
    """Linear and ReLU."""

    _kinds = (nn.Linear, nn.ReLU)

    def __init__(self, linear, relu):
        self._check_kinds(linear, relu)
        super().__init__(linear, relu)


class LinearBn1d(_FusedModule):
    """Linear and BatchNorm1d, for training."""

    _kinds = (nn.Linear, nn.BatchNorm1d)

    def __init__(self, linear, bn):
        self._check_kinds(linear, bn)
        super().__init__(linear, bn)


class LinearLeakyReLU(_FusedModule):
    """Linear and LeakyReLU."""

    _kinds = (nn.Linear, nn.LeakyReLU)

    def __init__(self, linear, leaky_relu):
        self._check_kinds(linear, leaky_relu)
        super().__init__(linear, leaky_relu)


class LinearTanh(_FusedModule):
    """Linear and Tanh."""

    _kinds = (nn.Linear, nn.Tanh)

    def __init__(self, linear, tanh):
        self._check_kinds(linear, tanh)
        super().__init__(linear, tanh)


class ConvAdd2d(_FusedModule):
    """A Conv2d whose result is added to another tensor.

    Args:
        conv (Conv2d): runs on the first tensor. add (callable): of the result and the second.
    """

    def __init__(self, conv, add):
        super().__init__(conv)
        self.add = add

    def forward(self, x1, x2):
        """The sum."""
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """A Conv2d whose result is added to another tensor, and a ReLU of the sum."""

    def __init__(self, conv, add, relu):
        super().__init__(conv)
        self.add, self.relu = add, relu

    def forward(self, x1, x2):
        """What is positive of the sum."""
        return self.relu(self.add(self[0](x1), x2))
