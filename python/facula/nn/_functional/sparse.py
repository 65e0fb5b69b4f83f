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
        raise AssertionError(
            f"embedding(): padding_idx must be in [-{rows}, {rows}); got {padding_idx}"
        )
    return padding_idx if padding_idx >= 0 else rows + padding_idx


def embedding(
    input,
    weight,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
):
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


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
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
    if input.is_floating_point() and weight.dtype == facula.int64:
        import warnings

        warnings.warn(
            "embedding_bag(): input comes first, weight second; got them the other way round",
            stacklevel=2,
        )
        input, weight = weight, input
    _check_factors(per_sample_weights, input)
    if weight.dim() != 2:
        raise ValueError(f"embedding_bag(): weight must have 2 dimensions; got {weight.dim()}")
    input, offsets, per_sample_weights = _flat_bags(input, offsets, per_sample_weights)
    code = _bag_mode(mode, scale_grad_by_freq, sparse)
    if max_norm is not None:
        _no_grad_embedding_renorm_(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag(): per_sample_weights needs mode 'sum'; got {mode!r}"
        )
    return facula.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        code,
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]


def _check_factors(factors, input):
    if factors is not None and factors.shape != input.shape:
        raise ValueError(
            "embedding_bag(): per_sample_weights must have input's shape, "
            f"{tuple(input.shape)}; got {tuple(factors.shape)}"
        )


def _flat_bags(input, offsets, weights):
    """The indices as one row with offsets; returns (input, offsets, weights)."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "embedding_bag(): a 2-D input, one bag in each row, takes no offsets; got "
                f"{type(offsets).__name__}"
            )
        starts = facula.arange(
            0, input.numel(), step=input.shape[1], dtype=input.dtype, device=input.device
        )
        return input.reshape(-1), starts, None if weights is None else weights.reshape(-1)
    if input.dim() != 1:
        raise ValueError(f"embedding_bag(): input must have 1 or 2 dimensions; got {input.dim()}")
    if offsets is None:
        raise ValueError("embedding_bag(): a 1-D input needs offsets; got None")
    if offsets.dim() != 1:
        raise ValueError(f"embedding_bag(): offsets must have 1 dimension; got {offsets.dim()}")
    return input, offsets, weights


def _bag_mode(mode, scale_grad_by_freq, sparse):
    if mode not in _BAG_MODES:
        raise ValueError(f"embedding_bag(): mode must be 'sum', 'mean' or 'max'; got {mode!r}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("embedding_bag(): mode 'max' has no scale_grad_by_freq")
    if mode == "max" and sparse:
        raise ValueError("embedding_bag(): mode 'max' has no sparse gradient")
    return _BAG_MODES[mode]
