"""Padding layers: each adds elements around the last dimensions."""

from __future__ import annotations

from facula.nn import functional as F
from facula.nn.modules.module import Module
from facula.nn.modules.utils import ntuple

_DOC = """{what} around the last {n} dimension(s).

    Args:
        padding: an int, or (before, after) of the last dimension, then of the one before it, ...
    """


class _PadNd(Module):
    __constants__ = ["padding"]
    _mode = "constant"
    _n = 1

    def __init__(self, padding) -> None:
        super().__init__()
        self.padding = ntuple(2 * self._n)(padding)

    def forward(self, input):
        """Pad `input`."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        """The setting."""
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, padding, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        """Pad `input`."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        """The settings."""
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def _check_input_dim(self, input):
        low = self._n + 1
        if input.dim() not in (low, low + 1):
            raise ValueError(
                f"{type(self).__name__}: input must be {low}D or {low + 1}D; got {input.dim()}D"
            )

    def forward(self, input):
        """Pad `input`. Raises ValueError for another number of dimensions."""
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class ConstantPad1d(_ConstantPadNd):
    __doc__ = _DOC.format(what="Adds `value`", n=1)
    _n = 1


class ConstantPad2d(_ConstantPadNd):
    __doc__ = _DOC.format(what="Adds `value`", n=2)
    _n = 2


class ConstantPad3d(_ConstantPadNd):
    __doc__ = _DOC.format(what="Adds `value`", n=3)
    _n = 3


class ReflectionPad1d(_ReflectionPadNd):
    __doc__ = _DOC.format(what="Adds the mirror image", n=1)
    _n = 1


class ReflectionPad2d(_ReflectionPadNd):
    __doc__ = _DOC.format(what="Adds the mirror image", n=2)
    _n = 2


class ReflectionPad3d(_ReflectionPadNd):
    __doc__ = _DOC.format(what="Adds the mirror image", n=3)
    _n = 3


class ReplicationPad1d(_ReplicationPadNd):
    __doc__ = _DOC.format(what="Repeats the border", n=1)
    _n = 1


class ReplicationPad2d(_ReplicationPadNd):
    __doc__ = _DOC.format(what="Repeats the border", n=2)
    _n = 2


class ReplicationPad3d(_ReplicationPadNd):
    __doc__ = _DOC.format(what="Repeats the border", n=3)
    _n = 3


class CircularPad1d(_CircularPadNd):
    __doc__ = _DOC.format(what="Wraps around", n=1)
    _n = 1


class CircularPad2d(_CircularPadNd):
    __doc__ = _DOC.format(what="Wraps around", n=2)
    _n = 2


class CircularPad3d(_CircularPadNd):
    __doc__ = _DOC.format(what="Wraps around", n=3)
    _n = 3


class ZeroPad1d(ConstantPad1d):
    __doc__ = _DOC.format(what="Adds zeros", n=1)

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self):
        """The setting."""
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    __doc__ = _DOC.format(what="Adds zeros", n=2)

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self):
        """The setting."""
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    __doc__ = _DOC.format(what="Adds zeros", n=3)

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self):
        """The setting."""
        return f"{self.padding}"
