"""Dropout layers."""
from __future__ import annotations

from facula.nn import functional as F
from facula.nn.modules.module import Module
from facula.nn.modules.utils import _keep


class _DropoutNd(Module):
    """What all dropout layers share. Raises ValueError for `p` outside [0, 1]."""

    __constants__ = ["p", "inplace"]

    def __init__(self, p=0.5, inplace=False):
        if not 0 <= p <= 1:
            raise ValueError(f"{type(self).__name__}: p must be in [0, 1]; got {p}")
        super().__init__()
        _keep(self, p=p, inplace=inplace)

    def extra_repr(self):
        """The settings."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training, zeroes each element with probability `p` and scales the others."""

    def forward(self, input):
        """Apply to `input` of any shape."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """In training, zeroes whole channels of a (N, C, L) or (C, L) input."""

    def forward(self, input):
        """Apply to `input`."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """In training, zeroes whole channels of a (N, C, H, W) input."""

    def forward(self, input):
        """Apply to `input`."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """In training, zeroes whole channels of a (N, C, D, H, W) or (C, D, H, W) input."""

    def forward(self, input):
        """Apply to `input`."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance of self-normalizing networks."""

    def forward(self, input):
        """Apply to `input` of any shape."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels."""

    def forward(self, input):
        """Apply to `input`."""
        return F.feature_alpha_dropout(input, self.p, self.training)
