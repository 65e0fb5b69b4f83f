"""Embeddings that train with fake-quantized rows."""

from __future__ import annotations

import facula
from facula import nn
from facula.nn import functional as F

from ._common import check_float, check_qconfig

__all__ = ["Embedding", "EmbeddingBag"]


def _check_scheme(name, qconfig):
    scheme = qconfig.weight().qscheme
    if scheme is not facula.per_channel_affine_float_qparams:
        raise AssertionError(
            f"{name} weights requires a qscheme of torch.per_channel_affine_float_qparams; "
            f"got {scheme}"
        )


class Embedding(nn.Embedding):
    """An embedding whose rows are rounded as quantization will round them.

    Args:
        qconfig (QConfig): has the weight's fake quantizer; the others are nn.Embedding's.
    """

    _FLOAT_MODULE = nn.Embedding

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        device=None,
        dtype=None,
        qconfig=None,
    ):
        options = {"device": device, "dtype": dtype}
        super().__init__(
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight,
            **options,
        )
        check_qconfig(qconfig)
        _check_scheme("Embedding", qconfig)
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs=options)

    def forward(self, input):
        """The rounded rows of indices."""
        return F.embedding(
            input,
            self.weight_fake_quant(self.weight),
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a float embedding with a configuration; the weight is shared.

        Raises:
            AssertionError: another class, no configuration, or one of another scheme.
        """
        check_float(cls, mod)
        _check_scheme("Embedding", mod.qconfig)
        made = cls(
            mod.num_embeddings,
            mod.embedding_dim,
            mod.padding_idx,
            mod.max_norm,
            mod.norm_type,
            mod.scale_grad_by_freq,
            mod.sparse,
            mod.weight,
            qconfig=mod.qconfig,
        )
        made.weight = mod.weight
        return made

    def to_float(self):
        """A float embedding with a copy of the weight."""
        made = nn.Embedding(
            self.num_embeddings,
            self.embedding_dim,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )
        made.weight = nn.Parameter(self.weight.detach())
        return made.train(self.training)


class EmbeddingBag(nn.EmbeddingBag):
    """Sums of rows that are rounded as quantization will round them.

    Args:
        qconfig (QConfig): has the weight's fake quantizer; the others are nn.EmbeddingBag's.
    """

    _FLOAT_MODULE = nn.EmbeddingBag

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="mean",
        sparse=False,
        _weight=None,
        include_last_offset=False,
        padding_idx=None,
        qconfig=None,
        device=None,
        dtype=None,
    ):
        options = {"device": device, "dtype": dtype}
        super().__init__(
            num_embeddings,
            embedding_dim,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            _weight,
            include_last_offset,
            padding_idx,
            **options,
        )
        check_qconfig(qconfig)
        _check_scheme("Embedding Bag", qconfig)
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs=options)

    def forward(self, input, offsets=None, per_sample_weights=None):
        """The sums of rounded rows."""
        return F.embedding_bag(
            input,
            self.weight_fake_quant(self.weight),
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

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a float embedding with a configuration; the weight is shared.

        Raises:
            AssertionError: another class, no configuration, or one of another scheme.
        """
        check_float(cls, mod)
        _check_scheme("Embedding Bag", mod.qconfig)
        made = cls(
            mod.num_embeddings,
            mod.embedding_dim,
            mod.max_norm,
            mod.norm_type,
            mod.scale_grad_by_freq,
            mod.mode,
            mod.sparse,
            mod.weight,
            mod.include_last_offset,
            mod.padding_idx,
            qconfig=mod.qconfig,
        )
        made.weight = mod.weight
        return made

    def to_float(self):
        """A float embedding with a copy of the weight."""
        made = nn.EmbeddingBag(
            self.num_embeddings,
            self.embedding_dim,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            None,
            self.include_last_offset,
            self.padding_idx,
        )
        made.weight = nn.Parameter(self.weight.detach())
        return made.train(self.training)
