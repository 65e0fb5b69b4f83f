"""Attention made of linear layers that can be observed and quantized."""

from __future__ import annotations

import math

import facula
from facula import nn
from facula.nn import functional as F

__all__ = ["MultiheadAttention"]


class MultiheadAttention(nn.MultiheadAttention):
    """Attention whose projections can be observed and quantized; arguments as nn's.

    Example:
        >>> from facula.ao.nn.quantizable import MultiheadAttention
        >>> x = facula.ones(3, 2, 4)
        >>> output, weights = MultiheadAttention(4, 2)(x, x, x)
        >>> output.shape, weights.shape
        (facula.Size([3, 2, 4]), facula.Size([2, 3, 3]))
    """

    _FLOAT_MODULE = nn.MultiheadAttention
    __constants__ = ("batch_first",)

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        from facula.ao.nn.quantized.modules.functional_modules import FloatFunctional
        from facula.ao.quantization.stubs import DeQuantStub, QuantStub

        options = {"device": device, "dtype": dtype}
        super().__init__(
            embed_dim,
            num_heads,
            dropout,
            bias,
            add_bias_kv,
            add_zero_attn,
            kdim,
            vdim,
            batch_first,
            **options,
        )
        self.linear_Q = nn.Linear(self.embed_dim, self.embed_dim, bias=bias, **options)
        self.linear_K = nn.Linear(self.kdim, self.embed_dim, bias=bias, **options)
        self.linear_V = nn.Linear(self.vdim, self.embed_dim, bias=bias, **options)
        self.out_proj = nn.Linear(self.embed_dim, self.embed_dim, bias=bias, **options)
        self.q_scaling_product = FloatFunctional()
        self.quant_attn_output, self.quant_attn_output_weights = QuantStub(), QuantStub()
        self.dequant_q, self.dequant_k = DeQuantStub(), DeQuantStub()
        self.dequant_v = DeQuantStub()

    def _get_name(self):
        return "QuantizableMultiheadAttention"

    @classmethod
    def from_float(cls, other):
        """From an nn.MultiheadAttention with a configuration; its parts are observed from now on.

        Raises:
            AssertionError: another class, or no configuration.
        """
        from facula.ao import quantization

        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"expected an nn.MultiheadAttention; got {type(other).__name__}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls(
            other.embed_dim,
            other.num_heads,
            other.dropout,
            other.in_proj_bias is not None,
            other.bias_k is not None,
            other.add_zero_attn,
            other.kdim,
            other.vdim,
            other.batch_first,
        )
        made.bias_k, made.bias_v = other.bias_k, other.bias_v
        made.qconfig = other.qconfig
        made.out_proj.weight, made.out_proj.bias = other.out_proj.weight, other.out_proj.bias
        made._take_projections(other)
        made.eval()
        return quantization.prepare(made, inplace=True)

    def _take_projections(self, other):
        layers = (self.linear_Q, self.linear_K, self.linear_V)
        if other._qkv_same_embed_dim:
            weights = other.in_proj_weight.detach().chunk(3)
        else:
            weights = (other.q_proj_weight, other.k_proj_weight, other.v_proj_weight)
        biases = [None] * 3
        if other.in_proj_bias is not None:
            biases = other.in_proj_bias.detach().chunk(3)
        for layer, weight, bias in zip(layers, weights, biases, strict=True):
            layer.weight = nn.Parameter(weight.detach())
            layer.bias = None if bias is None else nn.Parameter(bias)

    def dequantize(self):
        """A float attention with the values of this one's weights.

        Raises:
            NotImplementedError: keys or values of another size than queries.
        """
        made = nn.MultiheadAttention(
            self.embed_dim,
            self.num_heads,
            self.dropout,
            self.linear_Q._weight_bias()[1] is not None,
            self.bias_k is not None,
            self.add_zero_attn,
            self.kdim,
            self.vdim,
            self.batch_first,
        )
        if not made._qkv_same_embed_dim:
            raise NotImplementedError("dequantize(): kdim and vdim must be embed_dim")
        pairs = [m._weight_bias() for m in (self.linear_Q, self.linear_K, self.linear_V)]
        made.in_proj_weight = nn.Parameter(facula.cat([w.dequantize() for w, _ in pairs]))
        if made.in_proj_bias is not None:
            made.in_proj_bias = nn.Parameter(facula.cat([b.detach() for _, b in pairs]))
        weight, bias = self.out_proj._weight_bias()
        made.out_proj.weight = nn.Parameter(weight.dequantize())
        if bias is not None:
            made.out_proj.bias = nn.Parameter(bias.detach())
        for name in ("bias_k", "bias_v"):
            rows = getattr(self, name)
            if rows is not None:
                setattr(made, name, nn.Parameter(rows.dequantize()))
        return made

    @classmethod
    def from_observed(cls, other):
        """A converted copy of an observed attention."""
        from facula.ao import quantization

        return quantization.convert(other, inplace=False, remove_qconfig=True)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        """(outputs, weights or None), as nn.MultiheadAttention's."""
        return self._forward_impl(
            query,
            key,
            value,
            key_padding_mask,
            need_weights,
            attn_mask,
            average_attn_weights,
            is_causal,
        )

    def _heads(self, rows, batch):
        shape = (-1, batch * self.num_heads, self.head_dim)
        return rows.contiguous().view(shape).transpose(0, 1)

    def _more_rows(self, k, v, mask, batch):
        """Keys and values with the rows that do not come from inputs, and the mask for them."""
        if self.bias_k is not None:
            k = facula.cat([k, self.bias_k.repeat(1, batch, 1)])
            v = facula.cat([v, self.bias_v.repeat(1, batch, 1)])
            mask = None if mask is None else F.pad(mask, (0, 1))
        k, v = self._heads(k, batch), self._heads(v, batch)
        k, v = self.dequant_k(k), self.dequant_v(v)
        if self.add_zero_attn:
            k = F.pad(k, (0, 0, 0, 1))
            v = F.pad(v, (0, 0, 0, 1))
            mask = None if mask is None else F.pad(mask, (0, 1))
        return k, v, mask

    def _mask(self, attn_mask, key_padding_mask, batch, targets, sources):
        """What is added to scores, (batch * heads, targets, sources), or None."""
        if attn_mask is not None:
            attn_mask = _additive(attn_mask)
            if attn_mask.dim() == 2:
                attn_mask = attn_mask.unsqueeze(0)
            wanted = ((1, targets, sources), (batch * self.num_heads, targets, sources))
            if tuple(attn_mask.shape) not in wanted:
                raise RuntimeError(
                    f"The size of the attn_mask is not correct; got {tuple(attn_mask.shape)}"
                )
        if key_padding_mask is None:
            return attn_mask
        if tuple(key_padding_mask.shape) != (batch, sources):
            raise AssertionError(
                f"expected a key_padding_mask of {(batch, sources)}; "
                f"got {tuple(key_padding_mask.shape)}"
            )
        padding = _additive(key_padding_mask).view(batch, 1, 1, sources)
        padding = padding.expand(-1, self.num_heads, targets, -1)
        padding = padding.reshape(batch * self.num_heads, targets, sources)
        return padding if attn_mask is None else attn_mask + padding

    def _forward_impl(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        if attn_mask is not None and is_causal:
            raise AssertionError("Only allow causal mask or attn_mask")
        if is_causal:
            raise AssertionError("causal mask not supported by AO MHA module")
        if self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        targets, batch, size = query.size()
        if size != self.embed_dim:
            raise AssertionError(f"expected queries of size {self.embed_dim}; got {size}")
        sources = key.size(0)
        mask = self._mask(attn_mask, key_padding_mask, batch, targets, sources)
        q, k, v = self.linear_Q(query), self.linear_K(key), self.linear_V(value)
        q = self.q_scaling_product.mul_scalar(q, 1 / math.sqrt(self.head_dim))
        q = self.dequant_q(self._heads(q, batch))
        k, v, mask = self._more_rows(k, v, mask, batch)
        scores = facula.bmm(q, k.transpose(1, 2))
        scores = scores if mask is None else scores + mask
        weights = F.dropout(F.softmax(scores, dim=-1), self.dropout, self.training)
        mixed = facula.bmm(weights, v).transpose(0, 1).contiguous()
        mixed = mixed.view(targets, batch, self.embed_dim)
        if self.batch_first:
            mixed = mixed.transpose(0, 1)
        output = self.out_proj(self.quant_attn_output(mixed))
        weights = self.quant_attn_output_weights(weights)
        if not need_weights:
            return output, None
        weights = weights.view(batch, self.num_heads, targets, -1)
        return output, weights.mean(dim=1) if average_attn_weights else weights


def _additive(mask):
    """A mask of booleans, True where nothing is seen, as floats to add."""
    if mask.dtype is not facula.bool:
        return mask
    return facula.zeros(mask.shape).masked_fill(mask, float("-inf"))
