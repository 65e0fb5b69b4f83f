"""Dropout layers."""

from __future__ import annotations

from facula.nn import functional as F
from facula.nn.modules.module import Module
from facula.nn.modules.utils import _keep


class _DropoutNd(Module):
    """What all dropout layers share. Raises ValueError for `p` outside [0, 1]."""

    __constants__ = ["p", "inplace"]
    _op = ""
    _settings = ("p", "training", "inplace")

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if p < 0 or p > 1:
            raise ValueError(f"{type(self).__name__}: p must be in [0, 1]; got {p}")
        super().__init__()
        _keep(self, p=p, inplace=inplace)

    def forward(self, input):
        """Apply to `input`."""
        return getattr(F, self._op)(input, **{name: getattr(self, name) for name in self._settings})

    def extra_repr(self):
        """The settings."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training, zeroes each element with probability `p` and scales the others."""

    _op = "dropout"


class Dropout1d(_DropoutNd):
    """In training, zeroes whole channels of a (N, C, L) or (C, L) input."""

    _op = "dropout1d"


class Dropout2d(_DropoutNd):
    """In training, zeroes whole channels of a (N, C, H, W) input."""

    _op = "dropout2d"


class Dropout3d(_DropoutNd):
    """In training, zeroes whole channels of a (N, C, D, H, W) or (C, D, H, W) input."""

    _op = "dropout3d"


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance of self-normalizing networks."""

    _op = "alpha_dropout"
    _settings = ("p", "training")


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels."""

    _op = "feature_alpha_dropout"
    _settings = ("p", "training")
