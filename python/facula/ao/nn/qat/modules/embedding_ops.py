"""Embeddings that train with fake-quantized rows."""

from __future__ import annotations

import facula
from facula import nn
from facula.ao.nn._from_float import check_float
from facula.nn import functional as F

from ._common import check_qconfig

__all__ = ["Embedding", "EmbeddingBag"]


class _FakeQuantizedRows:
    """What these embeddings share; the float class comes after it in the order of bases."""

    def _start(self, qconfig, factory_kwargs):
        check_qconfig(qconfig)
        self._check_scheme(qconfig)
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs=factory_kwargs)

    @classmethod
    def _check_scheme(cls, qconfig):
        scheme = qconfig.weight().qscheme
        if scheme is not facula.per_channel_affine_float_qparams:
            raise AssertionError(
                f"qat.{cls.__name__}: expected a qconfig whose weight has the scheme "
                f"per_channel_affine_float_qparams; got {scheme}"
            )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a float embedding with a configuration; the weight is shared.

        Raises:
            AssertionError: another class, no configuration, or one of another scheme.
        """
        check_float(f"qat.{cls.__name__}", mod, cls._FLOAT_MODULE)
        cls._check_scheme(mod.qconfig)
        options = {name: getattr(mod, name) for name in cls._OPTIONS}
        made = cls(**options, _weight=mod.weight, qconfig=mod.qconfig)
        made.weight = mod.weight
        return made

    def to_float(self):
        """A float embedding with a copy of the weight."""
        made = self._FLOAT_MODULE(**{name: getattr(self, name) for name in self._OPTIONS})
        made.weight = nn.Parameter(self.weight.detach())
        return made.train(self.training)


class Embedding(_FakeQuantizedRows, nn.Embedding):
    """An embedding whose rows are rounded as quantization will round them.

    Args:
        qconfig (QConfig): has the weight's fake quantizer; the others are nn.Embedding's.
    """

    _FLOAT_MODULE = nn.Embedding
    _OPTIONS = (
        "num_embeddings",
        "embedding_dim",
        "padding_idx",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "sparse",
    )

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
        self._start(qconfig, options)

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


class EmbeddingBag(_FakeQuantizedRows, nn.EmbeddingBag):
    """Sums of rows that are rounded as quantization will round them.

    Args:
        qconfig (QConfig): has the weight's fake quantizer; the others are nn.EmbeddingBag's.
    """

    _FLOAT_MODULE = nn.EmbeddingBag
    _OPTIONS = (*Embedding._OPTIONS, "mode", "include_last_offset")

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
        self._start(qconfig, options)

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
