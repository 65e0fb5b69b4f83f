"""Pooling layers."""
from __future__ import annotations

from facula.nn import functional as F
from facula.nn.modules.module import Module
from facula.nn.modules.utils import _pair, _single, _triple


class _MaxPoolNd(Module):
    """Maxima of windows.

    Args:
        kernel_size, stride, padding, dilation: ints, or one per dimension; the stride is the
            kernel size when None.
        return_indices: also give the positions of the maxima.
        ceil_mode: round the output size up.
    """

    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False,
                 ceil_mode=False):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self):
        """The settings."""
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
                f"dilation={self.dilation}, ceil_mode={self.ceil_mode}")

    def forward(self, input):
        """Pool `input`, (N, C, *) or (C, *)."""
        return self._function()(input, self.kernel_size, self.stride, self.padding, self.dilation,
                                ceil_mode=self.ceil_mode, return_indices=self.return_indices)


class MaxPool1d(_MaxPoolNd):
    __doc__ = _MaxPoolNd.__doc__

    @staticmethod
    def _function():
        return F.max_pool1d


class MaxPool2d(_MaxPoolNd):
    __doc__ = _MaxPoolNd.__doc__

    @staticmethod
    def _function():
        return F.max_pool2d


class MaxPool3d(_MaxPoolNd):
    __doc__ = _MaxPoolNd.__doc__

    @staticmethod
    def _function():
        return F.max_pool3d


class _MaxUnpoolNd(Module):
    """Puts pooled values back at their positions, zeros elsewhere.

    Args:
        kernel_size, stride, padding: as the max pooling had them.
    """

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        expand = self._expand
        self.kernel_size = expand(kernel_size)
        self.stride = expand(stride if stride is not None else kernel_size)
        self.padding = expand(padding)

    def extra_repr(self):
        """The settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"

    def forward(self, input, indices, output_size=None):
        """Unpool `input` to the positions `indices`; `output_size` picks among sizes."""
        return self._function()(input, indices, self.kernel_size, self.stride, self.padding,
                                output_size)


class MaxUnpool1d(_MaxUnpoolNd):
    __doc__ = _MaxUnpoolNd.__doc__
    _expand = staticmethod(_single)

    @staticmethod
    def _function():
        return F.max_unpool1d


class MaxUnpool2d(_MaxUnpoolNd):
    __doc__ = _MaxUnpoolNd.__doc__
    _expand = staticmethod(_pair)

    @staticmethod
    def _function():
        return F.max_unpool2d


class MaxUnpool3d(_MaxUnpoolNd):
    __doc__ = _MaxUnpoolNd.__doc__
    _expand = staticmethod(_triple)

    @staticmethod
    def _function():
        return F.max_unpool3d


class _AvgPoolNd(Module):
    """What the average poolings share."""

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self):
        """The settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """Means of windows of a (N, C, L) or (C, L) input.

    Args:
        kernel_size, stride, padding: ints; the stride is the kernel size when None.
        ceil_mode: round the output size up.
        count_include_pad: padding counts in the mean.
    """

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False,
                 count_include_pad=True):
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input):
        """Pool `input`."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad)


class _AvgPool(_AvgPoolNd):
    """Means of windows.

    Args:
        kernel_size, stride, padding: ints, or one per dimension.
        ceil_mode: round the output size up.
        count_include_pad: padding counts in the mean.
        divisor_override: divide by this instead of the window's size.
    """

    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False,
                 count_include_pad=True, divisor_override=None):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input):
        """Pool `input`, (N, C, *) or (C, *)."""
        return self._function()(input, self.kernel_size, self.stride, self.padding,
                                self.ceil_mode, self.count_include_pad, self.divisor_override)


class AvgPool2d(_AvgPool):
    __doc__ = _AvgPool.__doc__

    @staticmethod
    def _function():
        return F.avg_pool2d


class AvgPool3d(_AvgPool):
    __doc__ = _AvgPool.__doc__

    @staticmethod
    def _function():
        return F.avg_pool3d

    def __setstate__(self, state):
        super().__setstate__(state)
        for name, default in (("padding", 0), ("ceil_mode", False), ("count_include_pad", True)):
            self.__dict__.setdefault(name, default)


class _FractionalMaxPoolNd(Module):
    """Maxima of windows at random steps.

    Args:
        kernel_size: int, or one per dimension.
        output_size: wanted size, or None for `output_ratio` times the input's; give one.
        return_indices: also give the positions of the maxima.

    Raises:
        ValueError: neither or both of size and ratio, or a ratio outside (0, 1).
    """

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False,
                 _random_samples=None):
        super().__init__()
        expand, name = self._expand, type(self).__name__
        self.kernel_size = expand(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = expand(output_size) if output_size is not None else None
        self.output_ratio = expand(output_ratio) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling "
                             "ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input):
        """Pool `input`, (N, C, *) or (C, *)."""
        return self._function()(input, self.kernel_size, self.output_size, self.output_ratio,
                                self.return_indices, _random_samples=self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    __doc__ = _FractionalMaxPoolNd.__doc__
    _expand = staticmethod(_pair)

    @staticmethod
    def _function():
        return F.fractional_max_pool2d


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    __doc__ = _FractionalMaxPoolNd.__doc__
    _expand = staticmethod(_triple)

    @staticmethod
    def _function():
        return F.fractional_max_pool3d


class _LPPoolNd(Module):
    """The p-norm of windows.

    Args:
        norm_type: p.
        kernel_size, stride: ints, or one per dimension.
        ceil_mode: round the output size up.
    """

    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self):
        """The settings."""
        return (f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, "
                f"stride={self.stride}, ceil_mode={self.ceil_mode}")

    def forward(self, input):
        """Pool `input`, (N, C, *) or (C, *)."""
        return self._function()(input, float(self.norm_type), self.kernel_size, self.stride,
                                self.ceil_mode)


class LPPool1d(_LPPoolNd):
    __doc__ = _LPPoolNd.__doc__

    @staticmethod
    def _function():
        return F.lp_pool1d


class LPPool2d(_LPPoolNd):
    __doc__ = _LPPoolNd.__doc__

    @staticmethod
    def _function():
        return F.lp_pool2d


class LPPool3d(_LPPoolNd):
    __doc__ = _LPPoolNd.__doc__

    @staticmethod
    def _function():
        return F.lp_pool3d


class _AdaptiveMaxPoolNd(Module):
    """Maxima of as many windows as `output_size` says; with their positions when asked."""

    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self):
        """The setting."""
        return f"output_size={self.output_size}"

    def forward(self, input):
        """Pool `input`, (N, C, *) or (C, *)."""
        return self._function()(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    __doc__ = _AdaptiveMaxPoolNd.__doc__

    @staticmethod
    def _function():
        return F.adaptive_max_pool1d


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    __doc__ = _AdaptiveMaxPoolNd.__doc__

    @staticmethod
    def _function():
        return F.adaptive_max_pool2d


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    __doc__ = _AdaptiveMaxPoolNd.__doc__

    @staticmethod
    def _function():
        return F.adaptive_max_pool3d


class _AdaptiveAvgPoolNd(Module):
    """Means of as many windows as `output_size` says."""

    __constants__ = ["output_size"]

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def extra_repr(self):
        """The setting."""
        return f"output_size={self.output_size}"

    def forward(self, input):
        """Pool `input`, (N, C, *) or (C, *)."""
        return self._function()(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    __doc__ = _AdaptiveAvgPoolNd.__doc__

    @staticmethod
    def _function():
        return F.adaptive_avg_pool1d


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    __doc__ = _AdaptiveAvgPoolNd.__doc__

    @staticmethod
    def _function():
        return F.adaptive_avg_pool2d


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    __doc__ = _AdaptiveAvgPoolNd.__doc__

    @staticmethod
    def _function():
        return F.adaptive_avg_pool3d
