"""Decoders of the usual sizes, to simulate."""

from __future__ import annotations

from dataclasses import dataclass

import facula
from facula import nn
from facula.nn import functional as F

_attention = facula.ops.aten._scaled_dot_product_flash_attention_for_cpu


@dataclass(frozen=True)
class Size:
    """What a decoder is made of.

    Args:
        layers, width, heads, hidden (int): blocks, their width, heads of attention, and the width
            of the feed-forward part.
        vocabulary (int): tokens.
    """

    layers: int
    width: int
    heads: int
    hidden: int
    vocabulary: int = 32000

    def parameters(self):
        """How many there are."""
        block = 4 * self.width**2 + 3 * self.width * self.hidden + 2 * self.width
        return self.layers * block + (2 * self.vocabulary + 1) * self.width


SIZES = {
    "125m": Size(12, 768, 12, 2048),
    "1b": Size(16, 2048, 32, 5632),
    "7b": Size(32, 4096, 32, 11008),
    "70b": Size(80, 8192, 64, 28672),
}


class Block(nn.Module):
    """Attention and a gated feed-forward part, each after a norm.

    Args:
        size (Size): of the decoder.
        is_checkpointed (bool): keep the input alone, and compute the rest again in the backward.
    """

    def __init__(self, size, is_checkpointed=False):
        super().__init__()
        self.heads, self.is_checkpointed = size.heads, is_checkpointed
        self.norm, self.norm2 = nn.RMSNorm(size.width), nn.RMSNorm(size.width)
        self.qkv = nn.Linear(size.width, 3 * size.width, bias=False)
        self.out = nn.Linear(size.width, size.width, bias=False)
        self.gate = nn.Linear(size.width, size.hidden, bias=False)
        self.up = nn.Linear(size.width, size.hidden, bias=False)
        self.down = nn.Linear(size.hidden, size.width, bias=False)

    def _compute(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        # The fused kernel, which meta tensors would not choose by themselves.
        attention, _ = _attention(q, k, v, is_causal=True)
        x = x + self.out(attention.transpose(1, 2).reshape(batch, length, width))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))

    def forward(self, x):
        """The block's result of the same shape."""
        if self.is_checkpointed:
            return facula.utils.checkpoint.checkpoint(self._compute, x, use_reentrant=False)
        return self._compute(x)


class Decoder(nn.Module):
    """Blocks between an embedding and a map to tokens; or some of them, as a pipeline cuts it.

    Args:
        size (Size): of the whole.
        layers (int): blocks of this part.
        is_first, is_last (bool): whether the embedding, and the map to tokens, are here.
        is_checkpointed (bool): see `Block`.
    """

    def __init__(self, size, layers=None, is_first=True, is_last=True, is_checkpointed=False):
        super().__init__()
        layers = size.layers if layers is None else layers
        self.embed = nn.Embedding(size.vocabulary, size.width) if is_first else None
        self.blocks = nn.ModuleList(Block(size, is_checkpointed) for _ in range(layers))
        self.norm = nn.RMSNorm(size.width) if is_last else None
        self.head = nn.Linear(size.width, size.vocabulary, bias=False) if is_last else None

    def forward(self, x, targets=None):
        """The loss where the map to tokens is here, else what the next part takes."""
        if self.embed is not None:
            x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        if self.head is None:
            return x
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
