"""Layer, group, RMS and local response normalization."""

from __future__ import annotations

import facula
from facula.nn import functional as F
from facula.nn.modules.module import Module
from facula.nn.modules.utils import _keep, _ones_and_zeros
from facula.nn.parameter import Parameter


class LocalResponseNorm(Module):
    """Divides by (k + alpha * mean of squares over `size` neighbouring channels) ** beta."""

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        _keep(self, size=size, alpha=alpha, beta=beta, k=k)

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Normalize `input`, (N, C, *)."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        """The settings."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """Local response normalization over maps; not written yet, use LocalResponseNorm."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        raise NotImplementedError("CrossMapLRN2d is not implemented; use LocalResponseNorm")


def _shape(normalized_shape):
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class _AffineNorm(Module):
    """What normalizations with a weight and perhaps a bias share."""

    def _make_parameters(self, shape, weight, bias, device, dtype):
        for name, wanted in (("weight", weight), ("bias", bias)):
            value = facula.empty(shape, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, None if value is None else Parameter(value))
        self.reset_parameters()

    def reset_parameters(self):
        """Set weight to 1 and bias to 0."""
        _ones_and_zeros(self.weight, self.bias)


class LayerNorm(_AffineNorm):
    """Normalizes over the last dimensions.

    Args:
        normalized_shape: sizes of these dimensions, an int or a list.
        eps: added to the variance.
        elementwise_affine: whether there are trained weight and bias.
        bias: whether there is a bias when `elementwise_affine`.
        device, dtype: of the parameters.
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        _keep(
            self,
            normalized_shape=_shape(normalized_shape),
            eps=eps,
            elementwise_affine=elementwise_affine,
        )
        self._make_parameters(
            self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype
        )

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Normalize `input`, (*, *normalized_shape)."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        """The settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(_AffineNorm):
    """Normalizes over groups of channels of a (N, C, *) input.

    Args:
        num_groups, num_channels: counts; the first must divide the second.
        eps: added to the variance.
        affine: whether there are trained weight and bias, one per channel.
        device, dtype: of the parameters.
        bias: whether there is a bias when `affine`.

    Raises:
        ValueError: `num_groups` does not divide `num_channels`.
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups <= 0:
            raise ValueError(f"GroupNorm: num_groups must be positive; got {num_groups}")
        if num_channels % num_groups != 0:
            raise ValueError(
                f"GroupNorm: num_groups must divide num_channels; got {num_groups} "
                f"and {num_channels}"
            )
        _keep(self, num_groups=num_groups, num_channels=num_channels, eps=eps, affine=affine)
        self._make_parameters(num_channels, affine, affine and bias, device, dtype)

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Normalize `input`."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        """The settings."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides by the root mean square over the last dimensions.

    Args:
        normalized_shape: sizes of these dimensions, an int or a list.
        eps: added to the mean square; the machine epsilon when None.
        elementwise_affine: whether there is a trained weight.
        device, dtype: of the weight.
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = None
        if elementwise_affine:
            weight = Parameter(facula.empty(self.normalized_shape, device=device, dtype=dtype))
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self):
        """Set the weight to 1."""
        if self.elementwise_affine:
            _ones_and_zeros(self.weight)

    def forward(self, x: facula.Tensor) -> facula.Tensor:
        """Normalize `x`, (*, *normalized_shape)."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        """The settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )
