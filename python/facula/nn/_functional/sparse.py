"""Lookups in embedding tables."""
from __future__ import annotations

import facula

_BAG_MODES = {"sum": 0, "mean": 1, "max": 2}


def _no_grad_embedding_renorm_(weight, input, max_norm, norm_type):
    with facula.no_grad():
        facula.embedding_renorm_(weight, input, max_norm, norm_type)


def _row(padding_idx, weight):
    """A non-negative row number, -1 for None. Raises AssertionError when out of range."""
    if padding_idx is None:
        return -1
    rows = weight.size(0)
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx if padding_idx >= 0 else rows + padding_idx


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0,
              scale_grad_by_freq=False, sparse=False):
    """Rows of `weight` at the indices `input`.

    Args:
        input: integer Tensor of any shape.
        weight: (rows, size).
        padding_idx: a row that gets no gradient.
        max_norm: rows of a greater norm are scaled down, in place.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide gradients by the count of the index in the batch.
        sparse: the gradient of `weight` is a sparse tensor.

    Returns:
        A Tensor (*input.shape, size).

    Raises:
        AssertionError: `padding_idx` out of range.
    """
    row = _row(padding_idx, weight)
    if max_norm is not None:
        # The renorm reads and writes rows, so it needs contiguous indices.
        input = input.contiguous()
        _no_grad_embedding_renorm_(weight, input, max_norm, norm_type)
    return facula.embedding(weight, input, row, scale_grad_by_freq, sparse)


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2,
                  scale_grad_by_freq=False, mode="mean", sparse=False, per_sample_weights=None,
                  include_last_offset=False, padding_idx=None):
    """Sums, means or maxima of bags of rows of `weight`.

    Args:
        input: indices, (bags, n) for bags of one size, or (total) with `offsets`.
        weight: (rows, size).
        offsets: (bags) first positions of the bags.
        mode: "sum", "mean" or "max".
        per_sample_weights: factors of input's shape, for mode "sum".
        include_last_offset: `offsets` has the total as a last entry.
        padding_idx: a row that is left out of the reduction.

    Returns:
        A Tensor (bags, size).

    Raises:
        ValueError: shapes or modes that do not fit.
        NotImplementedError: weights in another mode than "sum".
    """
    if weight.dtype == facula.long and input.is_floating_point():
        import warnings
        warnings.warn("Argument order of nn.functional.embedding_bag was changed. Usage "
                      "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
                      "`embedding_bag(input, weight, ...)`.", stacklevel=2)
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then "
            f"it must have the same shape as the input ({input.shape})")
    if not weight.dim() == 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension "
                         f"{weight.dim()}")
    input, offsets, per_sample_weights = _flat_bags(input, offsets, per_sample_weights)
    code = _bag_mode(mode, scale_grad_by_freq, sparse)
    if max_norm is not None:
        _no_grad_embedding_renorm_(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub.")
    return facula.embedding_bag(weight, input, offsets, scale_grad_by_freq, code, sparse,
                                per_sample_weights, include_last_offset, padding_idx)[0]


def _flat_bags(input, offsets, weights):
    """The indices as one row with offsets; returns (input, offsets, weights)."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {type(offsets)}")
        offsets = facula.arange(0, input.numel(), input.size(1), dtype=input.dtype,
                                device=input.device)
        flat_weights = None if weights is None else weights.reshape(-1)
        return input.reshape(-1), offsets, flat_weights
    if input.dim() != 1:
        raise ValueError("input has to be 1D or 2D Tensor, but got Tensor of dimension "
                         f"{input.dim()}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, weights


def _bag_mode(mode, scale_grad_by_freq, sparse):
    if mode not in _BAG_MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    return _BAG_MODES[mode]
