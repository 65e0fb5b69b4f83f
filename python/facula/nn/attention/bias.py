"""Causal masks of attention as objects, which are made only where they are needed."""

from __future__ import annotations

from enum import IntEnum, auto

import facula
from facula.nn import functional as F

__all__ = ["causal_upper_left", "causal_lower_right", "CausalVariant", "CausalBias"]


class CausalVariant(IntEnum):
    """Where the diagonal of a causal mask begins (UPPER_LEFT) or ends (LOWER_RIGHT)."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(facula.Tensor):
    """A causal mask, for `attn_mask` of `scaled_dot_product_attention`.

    Args:
        variant: CausalVariant.
        seq_len_q, seq_len_kv: lengths of the sequences of queries and keys.

    Made by `causal_upper_left` and `causal_lower_right`.
    """

    def __init__(self, variant, seq_len_q, seq_len_kv):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"CausalBias: variant must be a CausalVariant; got {variant!r}")
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            import warnings

            warnings.warn(
                "causal_lower_right: more queries than keys leave rows without a key, which give "
                "NaN",
                stacklevel=3,
            )

    def _upper_left(self, device):
        ones = facula.ones(self.seq_len_q, self.seq_len_kv, device=device, dtype=facula.bool)
        return ones.tril()

    def _lower_right(self, device):
        ones = facula.ones(self.seq_len_q, self.seq_len_kv, device=device, dtype=facula.bool)
        return ones.tril(diagonal=self.seq_len_kv - self.seq_len_q)

    def _materialize(self, device=None):
        if self.variant == CausalVariant.UPPER_LEFT:
            return self._upper_left(device)
        return self._lower_right(device)

    @staticmethod
    def _dispatch(
        query,
        key,
        value,
        attn_mask,
        dropout_p=0.0,
        is_causal=False,
        scale=None,
        enable_gqa=False,
    ):
        if is_causal:
            raise ValueError(
                "scaled_dot_product_attention(): a CausalBias and is_causal=True exclude each other"
            )
        options = {"dropout_p": dropout_p, "scale": scale, "enable_gqa": enable_gqa}
        is_square = attn_mask.seq_len_q == attn_mask.seq_len_kv
        if is_square or attn_mask.variant == CausalVariant.UPPER_LEFT:
            return F.scaled_dot_product_attention(query, key, value, is_causal=True, **options)
        mask = attn_mask._materialize(query.device)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, **options)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") == "scaled_dot_product_attention":
            return cls._dispatch(*args, **kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    def __repr__(self):
        return repr(self._materialize())


def _two_sizes(name, size):
    if len(size) != 2:
        raise AssertionError(f"{name}(): expected 2 sizes; got {len(size)}")
    return size


def causal_upper_left(*size):
    """A causal mask with the diagonal from the upper left corner.

    Args:
        size: lengths of the sequences of queries and keys.

    Returns:
        CausalBias.

    Example:
        >>> facula.nn.attention.bias.causal_upper_left(2, 3)
        tensor([[ True, False, False],
                [ True,  True, False]])
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_two_sizes("causal_upper_left", size))


def causal_lower_right(*size):
    """A causal mask with the diagonal to the lower right corner, for keys known before.

    Args:
        size: lengths of the sequences of queries and keys.

    Returns:
        CausalBias.

    Example:
        >>> facula.nn.attention.bias.causal_lower_right(2, 3)
        tensor([[ True,  True, False],
                [ True,  True,  True]])
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_two_sizes("causal_lower_right", size))
