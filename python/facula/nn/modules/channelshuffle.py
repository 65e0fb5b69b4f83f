"""Mixes the channels of groups."""

from __future__ import annotations

from facula.nn import functional as F
from facula.nn.modules.module import Module


class ChannelShuffle(Module):
    """Splits the channels into `groups` and interleaves them."""

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input):
        """Rearrange `input`, (N, C, *)."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self):
        """The setting."""
        return f"groups={self.groups}"
