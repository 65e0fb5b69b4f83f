"""Attention of sequences of different lengths that lie side by side in plain tensors."""

from __future__ import annotations

from typing import NamedTuple

import facula

__all__ = ["varlen_attn", "varlen_attn_out", "AuxRequest"]


class AuxRequest(NamedTuple):
    """What `varlen_attn` returns beside the output.

    Args:
        lse (bool): the logarithm of the sum of exponentials of each row of scores.

    Example:
        >>> AuxRequest()
        AuxRequest(lse=False)
    """

    lse: bool = False


def varlen_attn(
    query,
    key,
    value,
    cu_seq_q,
    cu_seq_k,
    max_q,
    max_k,
    *,
    return_aux=None,
    scale=None,
    window_size=(-1, -1),
    enable_gqa=False,
    seqused_k=None,
    block_table=None,
    num_splits=None,
):
    """Scaled dot product attention in each of several sequences that lie side by side.

    A query at place i of a sequence with `q` queries and `k` keys stands at key i + k - q, so that
    the last query sees the last key. It attends to keys from `left` before to `right` after that.

    Args:
        query (Tensor): [queries, heads, size].
        key, value (Tensor): [keys, heads, size]; with `enable_gqa` of fewer heads.
        cu_seq_q, cu_seq_k (Tensor): of ints, [batch + 1]: where each sequence begins, and the end.
        max_q, max_k (int): the greatest lengths; the sequences' own are used.
        return_aux (AuxRequest): what to return beside the output.
        scale (float): of the scores; 1 / sqrt(size) where None.
        window_size (tuple of int): (left, right); -1 for no limit; (-1, 0) is causal attention.
        enable_gqa (bool): whether each head of key and value serves several of query.
        seqused_k (Tensor): of ints, [batch]: how many keys of each sequence count.
        block_table, num_splits: must be None.

    Returns:
        Tensor: [queries, heads, size]; with `return_aux.lse` a tuple of it and [heads, queries].

    Raises:
        NotImplementedError: with block_table or num_splits.
        RuntimeError: the sequences do not lie in the tensors.

    Example:
        >>> x, ends = facula.ones(3, 1, 2), facula.tensor([0, 1, 3])
        >>> varlen_attn(x, x, x, ends, ends, 2, 2).shape
        facula.Size([3, 1, 2])
    """
    for name, given in (("block_table", block_table), ("num_splits", num_splits)):
        if given is not None:
            raise NotImplementedError(f"varlen_attn(): {name} is missing; got {type(given)}")
    cu_seq_k = cu_seq_q if cu_seq_k is None else cu_seq_k
    lengths_q = _lengths("cu_seq_q", cu_seq_q, query)
    lengths_k = _lengths("cu_seq_k", cu_seq_k, key)
    if len(lengths_q) != len(lengths_k) or key.shape[0] != value.shape[0]:
        raise RuntimeError(
            "varlen_attn(): query, key and value must have as many sequences; got "
            f"{len(lengths_q)} and {len(lengths_k)}, {key.shape[0]} and {value.shape[0]} rows"
        )
    used = lengths_k if seqused_k is None else [int(n) for n in seqused_k.tolist()]
    if len(used) != len(lengths_k) or any(
        not 0 <= n <= whole for n, whole in zip(used, lengths_k, strict=True)
    ):
        raise RuntimeError(
            f"varlen_attn(): seqused_k must lie in the lengths {lengths_k}; got {used}"
        )
    parts = zip(
        query.split(lengths_q), key.split(lengths_k), value.split(lengths_k), used, strict=True
    )
    options = (scale, tuple(window_size), enable_gqa, return_aux is not None and return_aux.lse)
    results = [_one(q, k[:n], v[:n], *options) for q, k, v, n in parts]
    output = facula.cat([result[0] for result in results]) if results else query.clone()
    if not options[-1]:
        return output
    return output, facula.cat([result[1] for result in results], 1)


def varlen_attn_out(out, query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, **options):
    """`varlen_attn` that writes into a tensor.

    Args:
        out (Tensor): [queries, heads, size].
        query, key, value, cu_seq_q, cu_seq_k, max_q, max_k: as those of `varlen_attn`.
        options: the keyword arguments of `varlen_attn`.

    Returns:
        Tensor: `out`, or what `varlen_attn` returns with `out` as its output.

    Example:
        >>> x, ends = facula.ones(3, 1, 2), facula.tensor([0, 1, 3])
        >>> varlen_attn_out(facula.empty(3, 1, 2), x, x, x, ends, ends, 2, 2).shape
        facula.Size([3, 1, 2])
    """
    result = varlen_attn(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, **options)
    if isinstance(result, tuple):
        return out.copy_(result[0]), result[1]
    return out.copy_(result)


def _lengths(name, ends, rows):
    if rows.dim() != 3:
        raise RuntimeError(
            f"varlen_attn(): query, key and value must have 3 dimensions; got {rows.dim()}"
        )
    found = [int(n) for n in ends.tolist()]
    lengths = [b - a for a, b in zip(found, found[1:], strict=False)]
    if not found or found[0] != 0 or found[-1] != rows.shape[0] or min(lengths, default=0) < 0:
        raise RuntimeError(
            f"varlen_attn(): {name} must rise from 0 to {rows.shape[0]}; got {found}"
        )
    return lengths


def _one(query, key, value, scale, window, enable_gqa, wants_lse):
    """The output of one sequence, [queries, heads, size], and its lse, [heads, queries]."""
    q, k, v = (t.transpose(0, 1).unsqueeze(0) for t in (query, key, value))
    mask = _window_mask(query.shape[0], key.shape[0], window, query.device)
    output = facula.nn.functional.scaled_dot_product_attention(
        q, k, v, mask, scale=scale, enable_gqa=enable_gqa
    )
    output = output.squeeze(0).transpose(0, 1)
    if not wants_lse:
        return output, None
    if enable_gqa:
        k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = (q @ k.mT).float() * (query.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, -facula.inf)
    return output, scores.logsumexp(-1).squeeze(0)


def _window_mask(queries, keys, window, device):
    """Which keys a query sees; None for all."""
    left, right = window
    if left < 0 and right < 0:
        return None
    at = facula.arange(queries, device=device).unsqueeze(1) + (keys - queries)
    distance = facula.arange(keys, device=device) - at
    mask = facula.ones(queries, keys, dtype=facula.bool, device=device)
    if left >= 0:
        mask = mask & (distance >= -left)
    return mask & (distance <= right) if right >= 0 else mask
