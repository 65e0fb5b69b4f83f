"""Multi-head attention as one function."""

from __future__ import annotations

import math

import facula

_nn = facula._C._nn


def _none_or_dtype(input):
    if input is None:
        return None
    if isinstance(input, facula.Tensor):
        return input.dtype
    raise RuntimeError(f"_none_or_dtype(): expected None or a Tensor; got {type(input).__name__}")


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A float mask of a bool or float one: -inf where a bool mask is True."""
    if mask is None:
        return None
    is_float = facula.is_floating_point(mask)
    if mask.dtype != facula.bool and not is_float:
        raise AssertionError(f"{mask_name} must be bool or floating point; got {mask.dtype}")
    if check_other and other_type is not None and mask.dtype != other_type:
        import warnings

        warnings.warn(
            f"{mask_name} and {other_name} should have one dtype; got {mask.dtype} and "
            f"{other_type}",
            stacklevel=3,
        )
    if is_float:
        return mask
    return facula.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _check_key_padding_mask(key_padding_mask, src_len, bsz):
    shape = tuple(key_padding_mask.shape)
    if shape != (bsz, src_len):
        raise AssertionError(f"key_padding_mask must have shape {(bsz, src_len)}; got {shape}")


def _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether the inputs have a batch dimension. Raises AssertionError for bad shapes."""
    ndim = query.dim()
    if ndim not in (2, 3):
        raise AssertionError(f"query must have 2 dimensions, or 3 with a batch; got {ndim}")
    if key.dim() != ndim or value.dim() != ndim:
        raise AssertionError(
            f"key and value must have query's {ndim} dimensions; got {key.dim()} and {value.dim()}"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != ndim - 1:
        raise AssertionError(
            f"key_padding_mask must be None or have {ndim - 1} dimensions; got "
            f"{key_padding_mask.dim()}"
        )
    if attn_mask is None:
        return ndim == 3
    if attn_mask.dim() not in (2, 3):
        raise AssertionError(
            f"attn_mask must be None or have 2 or 3 dimensions; got {attn_mask.dim()}"
        )
    if ndim == 2 and attn_mask.dim() == 3:
        expected = (num_heads, query.shape[0], key.shape[0])
        if tuple(attn_mask.shape) != expected:
            raise AssertionError(
                f"attn_mask must have shape {expected}; got {tuple(attn_mask.shape)}"
            )
    return ndim == 3


def _in_projection_packed(q, k, v, w, b=None):
    """Query, key and value times their parts of one weight (3 * E, E); returns a list."""
    size = q.size(-1)
    if k is v and q is k:
        # One product for all three; the parts are then made contiguous.
        packed = _nn.linear(q, w, b)
        packed = packed.unflatten(-1, (3, size)).unsqueeze(0).transpose(0, -2).squeeze(-2)
        packed = packed.contiguous()
        return [packed[0], packed[1], packed[2]]
    if k is v:
        w_q, w_kv = w.split([size, size * 2])
        b_q, b_kv = (None, None) if b is None else b.split([size, size * 2])
        packed = _nn.linear(k, w_kv, b_kv)
        packed = packed.unflatten(-1, (2, size)).unsqueeze(0).transpose(0, -2).squeeze(-2)
        packed = packed.contiguous()
        return [_nn.linear(q, w_q, b_q), packed[0], packed[1]]
    biases = (None, None, None) if b is None else b.chunk(3)
    return [
        _nn.linear(x, part, bias)
        for x, part, bias in zip((q, k, v), w.chunk(3), biases, strict=True)
    ]


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """Query, key and value times weights of their own; returns a tuple."""
    return _nn.linear(q, w_q, b_q), _nn.linear(k, w_k, b_k), _nn.linear(v, w_v, b_v)


def _check_static(name, static, bsz, num_heads, head_dim):
    if static.size(0) != bsz * num_heads:
        raise AssertionError(
            f"{name} must have {bsz * num_heads} as its first size; got {static.size(0)}"
        )
    if static.size(2) != head_dim:
        raise AssertionError(f"expecting {name}.size(2) of {head_dim}, but got {static.size(2)}")
    return static


def _mask_of_heads(attn_mask, tgt_len, src_len, bsz, num_heads):
    """The attention mask with 3 dimensions. Raises RuntimeError for a wrong shape."""
    if attn_mask.dim() == 2:
        expected, name = (tgt_len, src_len), "2D"
    else:
        expected, name = (bsz * num_heads, tgt_len, src_len), "3D"
    if tuple(attn_mask.shape) != expected:
        raise RuntimeError(
            f"a {name} attn_mask must have shape {expected}; got {tuple(attn_mask.shape)}"
        )
    return attn_mask.unsqueeze(0) if attn_mask.dim() == 2 else attn_mask


def _pad_one(mask):
    return None if mask is None else _nn.pad(mask, (0, 1))


def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """Attention with several heads, projections included.

    Args:
        query: (L, N, E) or (L, E). key, value: (S, N, E) or (S, E).
        embed_dim_to_check: E. num_heads: must divide E.
        in_proj_weight, in_proj_bias: (3 * E, E), (3 * E); or three weights of their own.
        bias_k, bias_v: (1, 1, E) added to the sequences, or None.
        key_padding_mask: (N, S) or (S), True or -inf for keys to leave out.
        attn_mask: (L, S) or (N * num_heads, L, S).
        need_weights: also give the weights, averaged over heads unless told otherwise.
        is_causal: hint that `attn_mask` is the causal mask.

    Returns:
        The output (L, N, E) or (L, E), and the weights or None.

    Raises:
        AssertionError, RuntimeError: shapes that do not fit.
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    tgt_len, bsz, embed_dim = query.shape
    src_len = key.shape[0]
    attn_mask, key_padding_mask, is_causal = _canonical_masks(
        attn_mask, key_padding_mask, query.dtype, need_weights, is_causal
    )
    head_dim = _head_dim(embed_dim, embed_dim_to_check, num_heads)
    _check_keys(key, value, use_separate_proj_weight)
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = _in_projection(query, key, value, *weights, *biases)
    else:
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _mask_of_heads(attn_mask, tgt_len, src_len, bsz, num_heads)
    if bias_k is not None and bias_v is not None:
        k, v = (facula.cat([x, extra.repeat(1, bsz, 1)]) for x, extra in ((k, bias_k), (v, bias_v)))
        attn_mask, key_padding_mask = _pad_one(attn_mask), _pad_one(key_padding_mask)
    sizes = (bsz, num_heads, head_dim)
    q = _split_heads(q, *sizes)
    k = _split_heads(k, *sizes) if static_k is None else _check_static("static_k", static_k, *sizes)
    v = _split_heads(v, *sizes) if static_v is None else _check_static("static_v", static_v, *sizes)
    if add_zero_attn:
        k, v = (facula.cat([x, x.new_zeros(x.shape[0], 1, head_dim)], dim=1) for x in (k, v))
        attn_mask, key_padding_mask = _pad_one(attn_mask), _pad_one(key_padding_mask)
    mask = _merged_mask(attn_mask, key_padding_mask, bsz, num_heads, k.size(1))
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        output, weights = _weighted(q, k, v, mask, dropout_p)
        weights = weights.view(bsz, num_heads, tgt_len, k.size(1))
        weights = weights.mean(dim=1) if average_attn_weights else weights
    else:
        output, weights = _unweighted(q, k, v, mask, dropout_p, is_causal, bsz, num_heads), None
    output = _nn.linear(output.reshape(tgt_len * bsz, embed_dim), out_proj_weight, out_proj_bias)
    output = output.view(tgt_len, bsz, output.size(1))
    if batched:
        return output, weights
    return output.squeeze(1), None if weights is None else weights.squeeze(0)


def _canonical_masks(attn_mask, key_padding_mask, dtype, need_weights, is_causal):
    """Both masks as numbers that are added to scores, and whether the kernel makes its own mask."""
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError("is_causal=True is a hint about attn_mask; got no attn_mask")
    if is_causal and key_padding_mask is None and not need_weights:
        return None, None, True
    attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", dtype, False)
    return attn_mask, key_padding_mask, is_causal and key_padding_mask is None


def _head_dim(embed_dim, expected, num_heads):
    if embed_dim != expected:
        raise AssertionError(f"embed_dim must be {expected}; got query of {embed_dim}")
    if embed_dim % num_heads:
        raise AssertionError(f"num_heads must divide embed_dim; got {num_heads} and {embed_dim}")
    return embed_dim // num_heads


def _split_heads(x, bsz, num_heads, head_dim):
    """(N, batch, E) as (batch * heads, N, E / heads)."""
    return x.view(x.shape[0], bsz * num_heads, head_dim).transpose(0, 1)


def _check_keys(key, value, separate):
    if separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(
            "key and value must agree in their first two sizes; got "
            f"{tuple(key.shape[:2])} and {tuple(value.shape[:2])}"
        )
    if not separate and key.shape != value.shape:
        raise AssertionError(
            f"key and value must have one shape; got {tuple(key.shape)} and {tuple(value.shape)}"
        )


def _merged_mask(attn_mask, key_padding_mask, bsz, num_heads, src_len):
    if key_padding_mask is None:
        return attn_mask
    _check_key_padding_mask(key_padding_mask, src_len, bsz)
    padding = key_padding_mask.view(bsz, 1, 1, src_len).expand(-1, num_heads, -1, -1)
    padding = padding.reshape(bsz * num_heads, 1, src_len)
    return padding if attn_mask is None else attn_mask + padding


def _weighted(q, k, v, mask, dropout_p):
    """Attention by matrix products; returns output (L, heads, d) and weights."""
    scaled = q * math.sqrt(1.0 / float(q.size(-1)))
    if mask is None:
        scores = facula.bmm(scaled, k.transpose(-2, -1))
    else:
        scores = facula.baddbmm(mask, scaled, k.transpose(-2, -1))
    weights = scores.softmax(-1)
    if dropout_p > 0.0:
        weights = facula.dropout(weights, dropout_p, True)
    return facula.bmm(weights, v).transpose(0, 1).contiguous(), weights


def _unweighted(q, k, v, mask, dropout_p, is_causal, bsz, num_heads):
    """Attention by the fused operator; returns output (L, N, heads, d)."""
    if mask is not None:
        mask = mask.unsqueeze(0) if mask.size(0) == 1 else mask.view(bsz, num_heads, -1, k.size(1))
    q, k, v = (x.view(bsz, num_heads, x.size(1), x.size(2)) for x in (q, k, v))
    output = _nn.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    return output.permute(2, 0, 1, 3).contiguous()
