"""Rule of the jagged layout: scaled_dot_product_attention, sequence by sequence.

Padding would compute with the zeros, and a mask would keep the fast kernels away; sequences differ
in length, and each is a batch of heads of its own.
"""

from __future__ import annotations

import facula

from .ops import _parts, is_jagged, rule, wrapped


@rule(
    "scaled_dot_product_attention",
    "jagged query, key and value, [batch, heads, ragged, size]; no attn_mask",
)
def _attention(
    func,
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    scale=None,
    enable_gqa=False,
):
    _check(query, key, value, attn_mask, dropout_p)
    moved = [_parts(t) for t in (query, key, value)]
    options = {"is_causal": is_causal, "dropout_p": dropout_p, "scale": scale}
    if enable_gqa:
        options["enable_gqa"] = True
    parts = [
        func(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), **options).squeeze(0)
        for q, k, v in zip(*moved, strict=True)
    ]
    spec = query._spec
    if query.dim() == 3:
        return wrapped(facula.cat(parts, spec.inner), spec)
    if spec.ragged_idx == 1:  # heads are ragged: what lies behind them is not the sequence
        return wrapped(facula.cat(parts, 0), spec)
    # Rows of a sequence lie together, so that heads can be joined by a view.
    rows = facula.cat([part.transpose(0, 1) for part in parts])
    return wrapped(rows.transpose(0, 1), spec)


def _same_lengths(a, b):
    """As Spec.same_lengths; lengths of tensors that were made apart are read and compared."""
    if a.same_lengths(b):
        return True
    return a.ragged_idx == b.ragged_idx and a.known().lengths == b.known().lengths


def _check(query, key, value, attn_mask, dropout_p):
    nested = [is_jagged(t) for t in (query, key, value)]
    if not all(nested):
        raise ValueError(
            "scaled_dot_product_attention(): query, key and value must be nested tensors; got "
            f"query.is_nested: {nested[0]}, key.is_nested: {nested[1]}, value.is_nested: "
            f"{nested[2]}"
        )
    if attn_mask is not None:
        raise ValueError(
            "scaled_dot_product_attention(): attn_mask is not supported for nested tensors"
        )
    if not (query.dtype == key.dtype == value.dtype):
        raise ValueError(
            "scaled_dot_product_attention(): query, key and value must have one dtype; got "
            f"{query.dtype}, {key.dtype} and {value.dtype}"
        )
    if not (query.dim() == key.dim() == value.dim() and query.dim() in (3, 4)):
        raise ValueError(
            "scaled_dot_product_attention(): query, key and value must have 3 or 4 dimensions; "
            f"got {query.dim()}, {key.dim()} and {value.dim()}"
        )
    if not _same_lengths(key._spec, value._spec):
        raise RuntimeError(
            "scaled_dot_product_attention(): key and value must have the same lengths; got shapes "
            f"{tuple(key.shape)} and {tuple(value.shape)}"
        )
    if query._spec.batch != key._spec.batch:
        raise RuntimeError(
            "scaled_dot_product_attention(): query and key must have the same batch; got "
            f"{query._spec.batch} and {key._spec.batch}"
        )
