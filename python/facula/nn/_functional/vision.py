"""Padding, resampling, sampling on grids, and patches of images."""

from __future__ import annotations

import math

import facula
from facula.nn.modules.utils import _pair

_nn = facula._C._nn
_LINEAR = ("linear", "bilinear", "bicubic", "trilinear")
_ANTIALIASED = ("bilinear", "bicubic", "lanczos")
_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
# (input dimensions, mode) -> operator; nearest modes take no align_corners.
_RESAMPLERS = {
    (3, "nearest"): "upsample_nearest1d",
    (4, "nearest"): "upsample_nearest2d",
    (5, "nearest"): "upsample_nearest3d",
    (3, "nearest-exact"): "_upsample_nearest_exact1d",
    (4, "nearest-exact"): "_upsample_nearest_exact2d",
    (5, "nearest-exact"): "_upsample_nearest_exact3d",
    (3, "linear"): "upsample_linear1d",
    (4, "bilinear"): "upsample_bilinear2d",
    (5, "trilinear"): "upsample_trilinear3d",
    (4, "bicubic"): "upsample_bicubic2d",
    (4, "lanczos"): "_upsample_lanczos2d",
}
_NEEDS = {"linear": 3, "bilinear": 4, "trilinear": 5}
_GRID_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_GRID_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


def pad(input, pad, mode="constant", value=None):
    """Add elements before and after the last dimensions.

    Args:
        input: Tensor.
        pad: (before, after) of the last dimension, then of the one before it, ...
        mode: "constant", "reflect", "replicate" or "circular".
        value: of constant padding, 0 when None.

    Returns:
        A Tensor.
    """
    return _nn.pad(input, pad, mode, value)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Sum (N, C * k, L) columns into (N, C, *output_size) images; returns a Tensor."""
    return _nn.col2im(
        input,
        _pair(output_size),
        _pair(kernel_size),
        _pair(dilation),
        _pair(padding),
        _pair(stride),
    )


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of (N, C, H, W) images as (N, C * k, L) columns; returns a Tensor."""
    return _nn.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def _check_interpolate(input, size, scale_factor, mode, align_corners, antialias):
    if align_corners is not None and mode not in _LINEAR:
        raise ValueError(
            "interpolate(): align_corners is for linear, bilinear, bicubic and "
            f"trilinear; got {mode!r}"
        )
    if size is not None and scale_factor is not None:
        raise ValueError("interpolate(): size and scale_factor exclude each other; got both")
    if size is None and scale_factor is None:
        raise ValueError("interpolate(): size or scale_factor must be given; got neither")
    if antialias and not (mode in _ANTIALIASED and input.ndim == 4):
        raise ValueError(
            "interpolate(): antialias is for bilinear, bicubic and lanczos on 4-D "
            f"input; got {mode!r} on {input.dim()}-D"
        )
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")


def _per_dimension(input, value, name, noun, letters):
    """One value per spatial dimension. Raises ValueError for a list of a wrong length."""
    dims = input.dim() - 2
    if not isinstance(value, (list, tuple)):
        return [value] * dims
    if len(value) != dims:
        raise ValueError(
            f"interpolate(): {name} must have a number for each of input's {input.dim() - 2} "
            f"spatial dimensions; got {value}"
        )
    return value


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """Resample a (N, C, ...) input with 1 to 3 spatial dimensions.

    Args:
        size: spatial size of the output, an int or one per dimension.
        scale_factor: factor of the size, a float or one per dimension; give one of the two.
        mode: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "lanczos"
            or "area".
        align_corners: corners of input and output coincide; for the linear modes.
        recompute_scale_factor: compute the factor again from the rounded output size.
        antialias: filter when scaling down; for "bilinear", "bicubic" and "lanczos".

    Returns:
        A Tensor.

    Raises:
        ValueError: arguments that do not go together.
        NotImplementedError: a mode that does not fit the number of dimensions.
    """
    input.dim()  # what is no tensor is told first
    _check_interpolate(input, size, scale_factor, mode, align_corners, antialias)
    output_size = scale_factors = None
    if size is not None:
        output_size = _per_dimension(input, size, "output", "output size of", "o")
    else:
        scale_factors = _per_dimension(
            input, scale_factor, "scale_factor", "scale_factor of shape", "s"
        )
    if recompute_scale_factor and size is not None:
        raise ValueError("interpolate(): recompute_scale_factor needs scale_factor; got size")
    if scale_factors is not None and (recompute_scale_factor or mode == "area"):
        output_size = [
            math.floor(float(n) * s) for n, s in zip(input.size()[2:], scale_factors, strict=True)
        ]
        scale_factors = None
    if mode == "area" and input.dim() in (3, 4, 5):
        return _area(input, output_size)
    return _resample(input, output_size, scale_factors, mode, bool(align_corners), antialias)


def _area(input, output_size):
    pools = {3: facula.adaptive_avg_pool1d, 4: _nn.adaptive_avg_pool2d, 5: _nn.adaptive_avg_pool3d}
    return pools[input.dim()](input, output_size)


def _resample(input, output_size, scale_factors, mode, align_corners, antialias):
    ndim = input.dim()
    name = _RESAMPLERS.get((ndim, mode))
    if name is None and ndim in (3, 4, 5) and mode in _NEEDS:
        raise NotImplementedError(f"Got {ndim}D input, but {mode} mode needs {_NEEDS[mode]}D input")
    if name is None:
        raise NotImplementedError(
            f"interpolate(): input must have 3 to 5 dimensions that suit the mode; got {ndim} for "
            f"{mode!r}"
        )
    if antialias:
        name = "_" + name.lstrip("_") + "_aa"
    op = getattr(_nn, name)
    if mode in ("nearest", "nearest-exact"):
        return op(input, output_size, scale_factors)
    return op(input, output_size, align_corners, scale_factors)


def _warn_upsample(name):
    import warnings

    warnings.warn(f"nn.functional.{name} is deprecated; interpolate() does the same", stacklevel=3)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """Old name of `interpolate`."""
    _warn_upsample("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """Old form of `interpolate` with mode "nearest"."""
    _warn_upsample("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """Old form of `interpolate` with mode "bilinear" and aligned corners."""
    _warn_upsample("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Values of `input` at the points of `grid`.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W).
        grid: (N, H2, W2, 2) or (N, D2, H2, W2, 3), coordinates in [-1, 1].
        mode: "bilinear", "nearest" or "bicubic".
        padding_mode: "zeros", "border" or "reflection".
        align_corners: -1 and 1 are the centres of the corner elements, not their edges.

    Raises:
        ValueError: an unknown mode.
    """
    if mode not in _GRID_MODES:
        raise ValueError(
            f"grid_sample(): mode must be 'bilinear', 'nearest' or 'bicubic'; got {mode!r}"
        )
    if padding_mode not in _GRID_PADDINGS:
        raise ValueError(
            "grid_sample(): padding_mode must be 'zeros', 'border' or 'reflection'; "
            f"got {padding_mode!r}"
        )
    return facula.grid_sampler(
        input, grid, _GRID_MODES[mode], _GRID_PADDINGS[padding_mode], bool(align_corners)
    )


def affine_grid(theta, size, align_corners=None):
    """The grid that affine maps make of an image, for `grid_sample`.

    Args:
        theta: (N, 2, 3) or (N, 3, 4) matrices.
        size: of the output image, 4 or 5 numbers.
        align_corners: as in `grid_sample`.

    Raises:
        ValueError: matrices of a wrong shape or dtype, or an empty output size.
        NotImplementedError: another number of dimensions.
    """
    if not theta.is_floating_point():
        raise ValueError(f"affine_grid(): theta must be floating point; got {theta.dtype}")
    ndim = len(size) - 2
    if ndim not in (2, 3):
        raise NotImplementedError(
            f"affine_grid(): size must have 4 numbers (2-D) or 5 (3-D); got {size}"
        )
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (ndim, ndim + 1):
        raise ValueError(
            f"affine_grid(): theta must have shape (N, {ndim}, {ndim + 1}) for size "
            f"{size}; got {tuple(theta.shape)}"
        )
    if min(size) <= 0:
        raise ValueError(f"affine_grid(): sizes must be positive; got {size}")
    return facula.affine_grid_generator(theta, size, bool(align_corners))
