"""Multi-head attention."""

from __future__ import annotations

import facula
from facula.nn import functional as F
from facula.nn import init
from facula.nn.modules.linear import NonDynamicallyQuantizableLinear
from facula.nn.modules.module import Module
from facula.nn.modules.utils import _keep
from facula.nn.parameter import Parameter


class MultiheadAttention(Module):
    """Attention with several heads.

    Args:
        embed_dim: size E of the vectors. num_heads: must divide it.
        dropout: probability, on the weights.
        bias: of the projections.
        add_bias_kv: add trained vectors to keys and values.
        add_zero_attn: add a zero key and value.
        kdim, vdim: sizes of keys and values when they differ from E.
        batch_first: shapes are (N, L, E), not (L, N, E).
        device, dtype: of the parameters.

    Raises:
        ValueError: sizes that are not positive.
        AssertionError: `num_heads` does not divide `embed_dim`.
    """

    __module__ = f"{facula.__name__}.nn.modules.activation"  # where pickles of PyTorch have it

    __constants__ = ["batch_first"]

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
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be positive; got {embed_dim} and {num_heads}"
            )
        if embed_dim % num_heads != 0:
            raise AssertionError(
                f"num_heads must divide embed_dim; got {num_heads} and {embed_dim}"
            )
        super().__init__()
        options = {"device": device, "dtype": dtype}
        kdim, vdim = (embed_dim if size is None else size for size in (kdim, vdim))
        _keep(
            self,
            embed_dim=embed_dim,
            kdim=kdim,
            vdim=vdim,
            num_heads=num_heads,
            head_dim=embed_dim // num_heads,
            dropout=dropout,
            batch_first=batch_first,
            add_zero_attn=add_zero_attn,
            _qkv_same_embed_dim={kdim, vdim} == {embed_dim},
        )

        def make(*shape):
            return Parameter(facula.empty(shape, **options))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = make(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = make(embed_dim, embed_dim)
            self.k_proj_weight = make(embed_dim, self.kdim)
            self.v_proj_weight = make(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", make(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **options)
        self.bias_k = make(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = make(1, 1, embed_dim) if add_bias_kv else None
        self._reset_parameters()

    def _reset_parameters(self):
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            for weight in (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """Both masks as one that fits the weights of all heads.

        Args:
            attn_mask (Tensor, optional): (L, L) or (N * num_heads, L, L), added to the weights.
            key_padding_mask (Tensor, optional): (N, L), added to the weights.
            query (Tensor): (N, L, E).

        Returns:
            (Tensor or None, int or None): the mask and its kind: 1 is the padding mask alone, as it
            came; 2 has shape (N, num_heads, L, L); None where there is no mask.

        Example:
            >>> layer = facula.nn.MultiheadAttention(4, 2)
            >>> merged, kind = layer.merge_masks(facula.zeros(3, 3), None, facula.ones(2, 3, 4))
            >>> merged.shape, kind
            (facula.Size([2, 2, 3, 3]), 2)
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length = query.shape[:2]
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            padding = key_padding_mask.view(batch, 1, 1, length)
            merged = merged + padding.expand(-1, self.num_heads, -1, -1)
        return merged, 2

    def forward(
        self,
        query: facula.Tensor,
        key: facula.Tensor,
        value: facula.Tensor,
        key_padding_mask: facula.Tensor | None = None,
        need_weights: bool = True,
        attn_mask: facula.Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[facula.Tensor, facula.Tensor | None]:
        """Attend from `query` to `key` and `value`; returns the output and weights or None."""
        if query.is_nested or key.is_nested or value.is_nested:
            # AssertionError is PyTorch's class for it.
            raise AssertionError(
                "MultiheadAttention(): expected plain tensors; got nested ones, for which "
                "scaled_dot_product_attention is there"
            )
        key_padding_mask = F._canonical_mask(
            key_padding_mask,
            "key_padding_mask",
            F._none_or_dtype(attn_mask),
            "attn_mask",
            query.dtype,
        )
        attn_mask = F._canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        swap = self.batch_first and query.dim() == 3
        if swap:
            query, key, value = _swapped(query, key, value)
        separate = (
            {}
            if self._qkv_same_embed_dim
            else {
                "use_separate_proj_weight": True,
                "q_proj_weight": self.q_proj_weight,
                "k_proj_weight": self.k_proj_weight,
                "v_proj_weight": self.v_proj_weight,
            }
        )
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **separate,
        )
        return (output.transpose(1, 0) if swap else output), weights


def _swapped(query, key, value):
    """The inputs with batch and sequence swapped; the same object stays the same object."""
    q = query.transpose(1, 0)
    k = q if key is query else key.transpose(1, 0)
    v = k if value is key else value.transpose(1, 0)
    return q, k, v
