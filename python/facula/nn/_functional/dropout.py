"""Dropout functions."""

from __future__ import annotations

import facula


def _check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout(): p must be in [0, 1]; got {p}")


def dropout(input, p=0.5, training=True, inplace=False):
    """Zero each element with probability `p` and scale the others by 1 / (1 - p).

    Args:
        input: Tensor of any shape.
        p: a number in [0, 1].
        training: when False, the input is returned as it is.

    Returns:
        A Tensor.

    Raises:
        ValueError: `p` out of range.
    """
    if p < 0.0 or p > 1.0:
        _check_probability(p)
    return facula.dropout_(input, p, training) if inplace else facula.dropout(input, p, training)


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean and variance of self-normalizing networks; returns a Tensor."""
    _check_probability(p)
    if inplace:
        return facula.alpha_dropout_(input, p, training)
    return facula.alpha_dropout(input, p, training)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """As `alpha_dropout`, for whole channels; returns a Tensor."""
    _check_probability(p)
    if inplace:
        return facula.feature_alpha_dropout_(input, p, training)
    return facula.feature_alpha_dropout(input, p, training)


def _feature_dropout(input, p, training, inplace):
    if inplace:
        return facula.feature_dropout_(input, p, training)
    return facula.feature_dropout(input, p, training)


def _warn(message):
    import warnings

    warnings.warn(message, stacklevel=4)


def _warn_dimensions(name, spatial, input_dim):
    _warn(
        f"{name}(): input should have {spatial + 1} or {spatial + 2} dimensions, {spatial} of "
        f"them spatial; got {input_dim}"
    )


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of a (N, C, L) or (C, L) input with probability `p`.

    Raises:
        ValueError: `p` out of range.
        RuntimeError: another number of dimensions.
    """
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (2, 3):
        raise RuntimeError(f"dropout1d(): input must be (C, L) or (N, C, L); got {ndim} dimensions")
    if ndim == 3:
        return _feature_dropout(input, p, training, inplace)
    batched = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = _feature_dropout(batched, p, training, inplace)
    return result.squeeze_(0) if inplace else result.squeeze(0)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of a (N, C, H, W) input with probability `p`; returns a Tensor."""
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (3, 4):
        _warn_dimensions("dropout2d", 2, ndim)
    if ndim == 3:
        _warn(
            "dropout2d(): a 3-D input is taken as (N, C, L), not as (C, H, W); dropout1d() says "
            "the same"
        )
    return _feature_dropout(input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of a (N, C, D, H, W) or (C, D, H, W) input; returns a Tensor."""
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (4, 5):
        _warn_dimensions("dropout3d", 3, ndim)
    batched = ndim != 4
    if not batched:
        input = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = _feature_dropout(input, p, training, inplace)
    if batched:
        return result
    return result.squeeze_(0) if inplace else result.squeeze(0)
