"""Attention whose scores and mask are functions of the places of query and key."""

from __future__ import annotations

import math
from typing import NamedTuple

import facula
from facula.nn.attention._block_mask import (  # noqa: F401  (public names of this module)
    _DEFAULT_SPARSE_BLOCK_SIZE,
    BlockMask,
    _get_mod_type,
    _ModificationType,
    and_masks,
    create_block_mask,
    create_mask,
    for_all_places,
    index_vectors,
    noop_mask,
    or_masks,
)

__all__ = [
    "BlockMask",
    "flex_attention",
    "AuxOutput",
    "AuxRequest",
    "create_block_mask",
    "create_mask",
    "or_masks",
    "and_masks",
    "noop_mask",
]


class AuxRequest(NamedTuple):
    """What `flex_attention` returns beside its output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for: logarithms of the sums of the exponentials, and greatest scores."""

    lse: facula.Tensor | None = None
    max_scores: facula.Tensor | None = None


def _identity(score, batch, head, token_q, token_kv):
    return score


def _check(query, key, value, block_mask, enable_gqa):
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError(
            "flex_attention(): query, key and value must have 4 dimensions; got "
            f"{query.dim()}, {key.dim()} and {value.dim()}"
        )
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "flex_attention(): query and key must have the same embedding size; got "
            f"{query.size(-1)} and {key.size(-1)}"
        )
    if query.size(0) != key.size(0) and (block_mask is None or key.size(0) != 1):
        raise ValueError(
            "flex_attention(): query and key must have the same batch size, or a block_mask and "
            f"one batch of keys; got {query.size(0)} and {key.size(0)}"
        )
    if query.size(1) != key.size(1) and not enable_gqa:
        raise ValueError(
            "flex_attention(): query and key must have as many heads (or enable_gqa=True); got "
            f"{query.size(1)} and {key.size(1)}"
        )
    if query.size(1) % key.size(1) != 0:
        raise ValueError(
            "flex_attention(): the number of heads of query must be a multiple of key's; got "
            f"{query.size(1)} and {key.size(1)}"
        )
    if block_mask is not None:
        _check_mask(query, key, block_mask)


def _check_mask(query, key, block_mask):
    for have, need, what in (
        (block_mask.seq_lengths[0], query.size(-2), "query"),
        (block_mask.seq_lengths[1], key.size(-2), "key"),
    ):
        if need > have:
            raise RuntimeError(
                f"flex_attention(): block_mask is for a {what} of length {have}; got {need}"
            )
    for dim, what in ((0, "batches"), (1, "heads")):
        size = block_mask.kv_num_blocks.size(dim) if block_mask.kv_num_blocks.dim() > dim else 1
        if size not in (1, query.size(dim)):
            raise RuntimeError(
                f"flex_attention(): block_mask must have 1 or {query.size(dim)} {what}; got {size}"
            )


def _scores(query, key, scale, score_mod, mask_mod):
    """The scores after their function and mask, float32 or float64; (B, H, Q, KV)."""
    is_double = query.dtype == facula.float64
    scores = (query @ key.transpose(-2, -1)).to(facula.float64 if is_double else facula.float32)
    scores = scores * scale
    indices = index_vectors(*scores.shape, scores.device)
    if score_mod is not None:
        scores = for_all_places(score_mod, True)(scores, *indices)
    if mask_mod is not None:
        mask = for_all_places(mask_mod, False)(*indices)
        scores = facula.where(mask, scores, float("-inf"))
    return scores


def flex_attention(
    query,
    key,
    value,
    score_mod=None,
    block_mask=None,
    scale=None,
    enable_gqa=False,
    return_lse=False,
    kernel_options=None,
    *,
    return_aux=None,
):
    """Attention with scores that a function changes: softmax(score_mod(q k^T * scale)) v.

    Dong et al., "Flex Attention". It is a composition of operators: `block_mask` masks, and saves
    no work.

    Args:
        query: (B, Hq, L, E). key: (B, Hkv, S, E). value: (B, Hkv, S, Ev).
        score_mod: function (score, b, h, q_idx, kv_idx) of 0-dim Tensors to a score.
        block_mask: BlockMask of the places that are seen; all when None.
        scale: factor of the scores; 1 / sqrt(E) when None.
        enable_gqa: allow Hq to be a multiple of Hkv.
        return_lse: also return the logarithms of the sums of the exponentials.
        kernel_options: accepted; for kernels of GPUs.
        return_aux: AuxRequest of what to return beside the output.

    Returns:
        Tensor (B, Hq, L, Ev); with return_lse and the like a tuple.

    Raises:
        ValueError, NotImplementedError, RuntimeError: sizes that do not fit.

    Example:
        >>> from facula.nn.attention.flex_attention import flex_attention
        >>> x = facula.randn(1, 2, 4, 8)
        >>> out = flex_attention(x, x, x, lambda s, b, h, q, kv: s - (q - kv).abs())
        >>> out.shape
        facula.Size([1, 2, 4, 8])
    """
    _check(query, key, value, block_mask, enable_gqa)
    if return_aux is not None and return_aux.max_scores and query.device.type == "cpu":
        raise NotImplementedError("flex_attention(): max_scores are not returned on the CPU")
    if return_lse and return_aux is not None:
        raise ValueError("flex_attention(): return_lse and return_aux exclude each other; got both")
    scale = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    groups = query.size(1) // key.size(1)
    if groups > 1:
        key, value = (t.repeat_interleave(groups, dim=1) for t in (key, value))
    mask_mod = None if block_mask is None else block_mask.mask_mod
    scores = _scores(query, key, scale, score_mod, mask_mod)
    lse = scores.logsumexp(dim=-1)
    # A query that sees no key has weights of 0, not NaN.
    is_blind = (scores == float("-inf")).all(dim=-1, keepdim=True)
    weights = scores.masked_fill(is_blind, 0.0).softmax(dim=-1).masked_fill(is_blind, 0.0)
    out = weights.to(query.dtype) @ value
    if return_aux is not None:
        return out, AuxOutput(lse=lse if return_aux.lse else None)
    return (out, lse) if return_lse else out
