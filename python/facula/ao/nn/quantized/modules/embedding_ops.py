"""Embeddings whose rows are quantized, each by its own range; results are floats."""

from __future__ import annotations

import facula
from facula import nn
from facula.ao.nn._from_float import check_float
from facula.nn import Module

from .utils import PackedModule, quantize_weight

__all__ = ["EmbeddingPackedParams", "Embedding", "EmbeddingBag"]


def _empty(rows, columns, dtype):
    return facula._empty_per_channel_affine_quantized(
        [rows, columns],
        scales=facula.ones(rows),
        zero_points=facula.zeros(rows),
        axis=0,
        dtype=dtype,
    )


class EmbeddingPackedParams(PackedModule):
    """The weight of a quantized embedding, packed; saved as it was before.

    Args:
        num_embeddings, embedding_dim (int): the sizes. dtype (facula.dtype): quint8 or quint4x2.

    Raises:
        NotImplementedError: another dtype.
    """

    _version = 1
    _PACKED = "_packed_weight"

    def __init__(self, num_embeddings, embedding_dim, dtype=facula.quint8):
        super().__init__()
        if dtype not in (facula.quint8, facula.quint4x2):
            raise NotImplementedError(
                f"Unsupported dtype on embedding: expected quint8 or quint4x2; got {dtype}"
            )
        self.dtype = dtype
        self.set_weight(_empty(num_embeddings, embedding_dim, dtype))

    def set_weight(self, weight):
        """Pack another quantized weight (rows, columns)."""
        self._packed_weight = facula.ops.quantized.embedding_bag_prepack(weight)

    def _weight(self):
        return facula.ops.quantized.embedding_bag_unpack(self._packed_weight)

    _unpacked = _weight

    def _take(self, dtype, saved):
        self.dtype = dtype
        self.set_weight(saved)


class Embedding(Module):
    """An embedding with rows of quint8 or quint4x2.

    Args:
        num_embeddings, embedding_dim (int): the sizes. _weight (Tensor): quantized by rows.
        dtype (facula.dtype): of the rows. The other arguments of nn.Embedding have no effect.

    Example:
        >>> from facula.ao.nn.quantized import Embedding
        >>> Embedding(10, 4)(facula.tensor([1, 2])).shape
        facula.Size([2, 4])
    """

    _version = 1
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
        dtype=facula.quint8,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.dtype = dtype
        if _weight is None:
            _weight = _empty(num_embeddings, embedding_dim, dtype)
        elif list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError(
                f"expected a weight of {[num_embeddings, embedding_dim]}; got {list(_weight.shape)}"
            )
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        self._packed_params.set_weight(_weight)

    def forward(self, indices):
        """The rows (*, columns), floats, of indices (*)."""
        four = self.dtype is facula.quint4x2
        quantized = facula.ops.quantized
        run = quantized.embedding_4bit if four else quantized.embedding_byte
        return run(self._packed_params._packed_weight, indices)

    def set_weight(self, w):
        """Pack another quantized weight (rows, columns)."""
        self._packed_params.set_weight(w)

    def weight(self):
        """The quantized weight."""
        return self._packed_params._weight()

    def _get_name(self):
        return "QuantizedEmbedding"

    def extra_repr(self):
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
            f"dtype={self._packed_params.dtype}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a float embedding with a configuration, or one that was trained with fake weights.

        Raises:
            AssertionError: another class, no configuration, or an observer of another scheme.
        """
        observer = _row_observer(cls, mod)
        observer(mod.weight)
        if observer.dtype not in (facula.quint8, facula.quint4x2):
            raise AssertionError(
                f"nnq.{cls.__name__}.from_float(): expected an observer of quint8 or quint4x2; "
                f"got {observer.dtype}"
            )
        return cls._made_from(mod, quantize_weight(mod.weight.float(), observer))

    @classmethod
    def _made_from(cls, mod, weight):
        return cls(mod.num_embeddings, mod.embedding_dim, _weight=weight, dtype=weight.dtype)

    @classmethod
    def from_reference(cls, ref_embedding):
        """From a reference embedding."""
        return cls._made_from(ref_embedding, ref_embedding.get_quantized_weight())


def _row_observer(cls, mod):
    if hasattr(mod, "weight_fake_quant"):
        return mod.weight_fake_quant
    check_float(f"nnq.{cls.__name__}", mod, cls._FLOAT_MODULE)
    from facula.ao.quantization.qconfig import float_qparams_weight_only_qconfig

    made = (mod.qconfig.weight or float_qparams_weight_only_qconfig.weight)()
    if made.qscheme is not facula.per_channel_affine_float_qparams:
        raise AssertionError(
            f"nnq.{cls.__name__}.from_float(): expected float_qparams_weight_only_qconfig, whose "
            f"scheme is per_channel_affine_float_qparams; got {made.qscheme}"
        )
    return made


class EmbeddingBag(Embedding):
    """Sums of quantized rows.

    Args:
        num_embeddings, embedding_dim, mode, include_last_offset: as nn.EmbeddingBag's.
        _weight (Tensor): quantized by rows. dtype (facula.dtype): quint8 or quint4x2.
    """

    _version = 1
    _FLOAT_MODULE = nn.EmbeddingBag

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="sum",
        sparse=False,
        _weight=None,
        include_last_offset=False,
        dtype=facula.quint8,
    ):
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode, self.include_last_offset = mode, include_last_offset
        self.pruned_weights = False

    def forward(
        self, indices, offsets=None, per_sample_weights=None, compressed_indices_mapping=None
    ):
        """The sums (bags, columns), floats."""
        four = self.dtype is facula.quint4x2
        quantized = facula.ops.quantized
        run = quantized.embedding_bag_4bit if four else quantized.embedding_bag_byte
        return run(
            self._packed_params._packed_weight,
            indices,
            offsets,
            False,
            0,
            self.pruned_weights,
            per_sample_weights,
            compressed_indices_mapping,
            self.include_last_offset,
        )

    def _get_name(self):
        return "QuantizedEmbeddingBag"

    @classmethod
    def _made_from(cls, mod, weight):
        return cls(
            mod.num_embeddings,
            mod.embedding_dim,
            mode=mod.mode,
            _weight=weight,
            include_last_offset=mod.include_last_offset,
            dtype=weight.dtype,
        )
