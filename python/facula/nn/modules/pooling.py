"""Pooling layers."""

from __future__ import annotations

from facula.nn import functional as F
from facula.nn.modules.module import Module
from facula.nn.modules.utils import _keep, _pair, _single, _triple


class _Pool(Module):
    """A layer that calls the function of nn.functional that `_op` names."""

    _op = ""

    def _run(self, *args, **options):
        return getattr(F, self._op)(*args, **options)

    def _shown(self, *names):
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)


def _stride_or(stride, kernel_size):
    return kernel_size if stride is None else stride


class _MaxPoolNd(_Pool):
    """Maxima of windows.

    Args:
        kernel_size, stride, padding, dilation: ints, or one per dimension; the stride is the
            kernel size when None.
        return_indices: also give the positions of the maxima.
        ceil_mode: round the output size up.
    """

    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        dilation=1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        _keep(
            self,
            kernel_size=kernel_size,
            stride=_stride_or(stride, kernel_size),
            padding=padding,
            dilation=dilation,
            return_indices=return_indices,
            ceil_mode=ceil_mode,
        )

    def extra_repr(self):
        """The settings."""
        return self._shown("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def forward(self, input):
        """Pool `input`, (N, C, *) or (C, *)."""
        return self._run(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool1d(_MaxPoolNd):
    __doc__ = _MaxPoolNd.__doc__
    _op = "max_pool1d"


class MaxPool2d(_MaxPoolNd):
    __doc__ = _MaxPoolNd.__doc__
    _op = "max_pool2d"


class MaxPool3d(_MaxPoolNd):
    __doc__ = _MaxPoolNd.__doc__
    _op = "max_pool3d"


class _MaxUnpoolNd(_Pool):
    """Puts pooled values back at their positions, zeros elsewhere.

    Args:
        kernel_size, stride, padding: as the max pooling had them.
    """

    def __init__(self, kernel_size, stride=None, padding=0) -> None:
        super().__init__()
        sizes = {
            "kernel_size": kernel_size,
            "stride": _stride_or(stride, kernel_size),
            "padding": padding,
        }
        _keep(self, **{name: self._expand(size) for name, size in sizes.items()})

    def extra_repr(self):
        """The settings."""
        return self._shown("kernel_size", "stride", "padding")

    def forward(self, input, indices, output_size: list[int] | None = None):
        """Unpool `input` to the positions `indices`; `output_size` picks among sizes."""
        return self._run(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd):
    __doc__ = _MaxUnpoolNd.__doc__
    _expand = staticmethod(_single)
    _op = "max_unpool1d"


class MaxUnpool2d(_MaxUnpoolNd):
    __doc__ = _MaxUnpoolNd.__doc__
    _expand = staticmethod(_pair)
    _op = "max_unpool2d"


class MaxUnpool3d(_MaxUnpoolNd):
    __doc__ = _MaxUnpoolNd.__doc__
    _expand = staticmethod(_triple)
    _op = "max_unpool3d"


class _AvgPoolNd(_Pool):
    """Means of windows.

    Args:
        kernel_size, stride, padding: ints, or one per dimension; the stride is the kernel size
            when None.
        ceil_mode: round the output size up.
        count_include_pad: padding counts in the mean.
    """

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        _keep(
            self,
            kernel_size=kernel_size,
            stride=_stride_or(stride, kernel_size),
            padding=padding,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
        )

    def extra_repr(self):
        """The settings."""
        return self._shown("kernel_size", "stride", "padding")

    def _pool(self, input, *options):
        return self._run(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            *options,
        )


class AvgPool1d(_AvgPoolNd):
    __doc__ = _AvgPoolNd.__doc__
    _op = "avg_pool1d"

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(
            _single(kernel_size),
            _single(_stride_or(stride, kernel_size)),
            _single(padding),
            ceil_mode,
            count_include_pad,
        )

    def forward(self, input):
        """Pool `input`, (N, C, L) or (C, L)."""
        return self._pool(input)


class _AvgPool(_AvgPoolNd):
    """Means of windows.

    Args:
        kernel_size, stride, padding: ints, or one per dimension.
        ceil_mode: round the output size up.
        count_include_pad: padding counts in the mean.
        divisor_override: divide by this instead of the window's size.
    """

    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        self.divisor_override = divisor_override

    def forward(self, input):
        """Pool `input`, (N, C, *) or (C, *)."""
        return self._pool(input, self.divisor_override)


class AvgPool2d(_AvgPool):
    __doc__ = _AvgPool.__doc__
    _op = "avg_pool2d"


class AvgPool3d(_AvgPool):
    __doc__ = _AvgPool.__doc__
    _op = "avg_pool3d"

    def __setstate__(self, state):
        super().__setstate__(state)
        for name, default in (("padding", 0), ("ceil_mode", False), ("count_include_pad", True)):
            self.__dict__.setdefault(name, default)


class _FractionalMaxPoolNd(_Pool):
    """Maxima of windows at random steps.

    Args:
        kernel_size: int, or one per dimension.
        output_size: wanted size, or None for `output_ratio` times the input's; give one.
        return_indices: also give the positions of the maxima.

    Raises:
        ValueError: neither or both of size and ratio, or a ratio outside (0, 1).
    """

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]

    def __init__(
        self,
        kernel_size,
        output_size=None,
        output_ratio=None,
        return_indices: bool = False,
        _random_samples=None,
    ) -> None:
        super().__init__()
        if (output_size is None) == (output_ratio is None):
            raise ValueError(
                f"{type(self).__name__}: one of output_size and output_ratio must be "
                f"given; got {output_size} and {output_ratio}"
            )
        size, ratio = (
            None if value is None else self._expand(value) for value in (output_size, output_ratio)
        )
        if ratio is not None and not all(0 < r < 1 for r in ratio):
            raise ValueError(
                f"{type(self).__name__}: output_ratio must be in (0, 1); got {output_ratio}"
            )
        _keep(
            self,
            kernel_size=self._expand(kernel_size),
            return_indices=return_indices,
            output_size=size,
            output_ratio=ratio,
        )
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input):
        """Pool `input`, (N, C, *) or (C, *)."""
        return self._run(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    __doc__ = _FractionalMaxPoolNd.__doc__
    _expand = staticmethod(_pair)
    _op = "fractional_max_pool2d"


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    __doc__ = _FractionalMaxPoolNd.__doc__
    _expand = staticmethod(_triple)
    _op = "fractional_max_pool3d"


class _LPPoolNd(_Pool):
    """The p-norm of windows.

    Args:
        norm_type: p.
        kernel_size, stride: ints, or one per dimension.
        ceil_mode: round the output size up.
    """

    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(self, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False) -> None:
        super().__init__()
        _keep(
            self, norm_type=norm_type, kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode
        )

    def extra_repr(self):
        """The settings."""
        return self._shown("norm_type", "kernel_size", "stride", "ceil_mode")

    def forward(self, input):
        """Pool `input`, (N, C, *) or (C, *)."""
        return self._run(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool1d(_LPPoolNd):
    __doc__ = _LPPoolNd.__doc__
    _op = "lp_pool1d"


class LPPool2d(_LPPoolNd):
    __doc__ = _LPPoolNd.__doc__
    _op = "lp_pool2d"


class LPPool3d(_LPPoolNd):
    __doc__ = _LPPoolNd.__doc__
    _op = "lp_pool3d"


class _AdaptiveMaxPoolNd(_Pool):
    """Maxima of as many windows as `output_size` says; with their positions when asked."""

    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self):
        """The setting."""
        return self._shown("output_size")

    def forward(self, input):
        """Pool `input`, (N, C, *) or (C, *)."""
        return self._run(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    __doc__ = _AdaptiveMaxPoolNd.__doc__
    _op = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    __doc__ = _AdaptiveMaxPoolNd.__doc__
    _op = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    __doc__ = _AdaptiveMaxPoolNd.__doc__
    _op = "adaptive_max_pool3d"


class _AdaptiveAvgPoolNd(_Pool):
    """Means of as many windows as `output_size` says."""

    __constants__ = ["output_size"]

    def __init__(self, output_size) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self):
        """The setting."""
        return self._shown("output_size")

    def forward(self, input):
        """Pool `input`, (N, C, *) or (C, *)."""
        return self._run(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    __doc__ = _AdaptiveAvgPoolNd.__doc__
    _op = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    __doc__ = _AdaptiveAvgPoolNd.__doc__
    _op = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    __doc__ = _AdaptiveAvgPoolNd.__doc__
    _op = "adaptive_avg_pool3d"
