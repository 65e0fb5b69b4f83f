"""The reference embeddings."""

from __future__ import annotations

from facula import nn
from facula.ao.nn.qat.modules.embedding_ops import Embedding as _QatEmbedding
from facula.ao.nn.qat.modules.embedding_ops import EmbeddingBag as _QatEmbeddingBag
from facula.nn import functional as F

from .utils import ReferenceQuantizedModule

__all__ = ["Embedding", "EmbeddingBag"]


class _ReferenceRows(ReferenceQuantizedModule):
    """What these embeddings share; the float class comes after it in the order of bases."""

    def __init__(self, *args, weight_qparams=None, device=None, dtype=None, **kwargs):
        super().__init__(*args, device=device, dtype=dtype, **kwargs)
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self):
        return "QuantizedEmbedding(Reference)"

    @classmethod
    def from_float(cls, mod, weight_qparams, use_precomputed_fake_quant=False):
        """From a float embedding, with a copy of its weight."""
        made = cls(
            **{name: getattr(mod, name) for name in cls._OPTIONS},
            device=mod.weight.device,
            dtype=mod.weight.dtype,
            weight_qparams=weight_qparams,
        )
        return made._take_parameters(mod)


class Embedding(_ReferenceRows, nn.Embedding):
    """An embedding with rounded rows.

    Args:
        weight_qparams (dict): `qscheme`, `dtype`, `scale`, `zero_point` and `axis` of the weight;
            the others are nn.Embedding's.
    """

    _OPTIONS = _QatEmbedding._OPTIONS

    def forward(self, input):
        """The rounded rows of indices."""
        return F.embedding(
            input,
            self.get_weight(),
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )


class EmbeddingBag(_ReferenceRows, nn.EmbeddingBag):
    """Sums of rounded rows; arguments as nn.EmbeddingBag's, and `weight_qparams`."""

    _OPTIONS = _QatEmbeddingBag._OPTIONS

    def forward(self, input, offsets=None, per_sample_weights=None):
        """The sums of rounded rows."""
        return F.embedding_bag(
            input,
            self.get_weight(),
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )
