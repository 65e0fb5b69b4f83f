"""Ranges of integers, and the scale and zero point for a range of values."""

from __future__ import annotations

import facula


def is_per_channel(scheme):
    """Whether a scheme has a scale for each channel."""
    return scheme in (
        facula.per_channel_affine,
        facula.per_channel_symmetric,
        facula.per_channel_affine_float_qparams,
    )


def is_per_tensor(scheme):
    """Whether a scheme has one scale for the whole tensor."""
    return scheme in (facula.per_tensor_affine, facula.per_tensor_symmetric)


def _is_symmetric(scheme):
    return scheme in (facula.per_tensor_symmetric, facula.per_channel_symmetric)


_RANGES = {
    facula.qint8: (-128, 127),
    facula.int8: (-128, 127),
    facula.quint8: (0, 255),
    facula.uint8: (0, 255),
    facula.qint32: (-(2**31), 2**31 - 1),
    facula.int32: (-(2**31), 2**31 - 1),
    facula.int16: (-(2**15), 2**15 - 1),
    facula.uint16: (0, 2**16 - 1),
    facula.quint4x2: (0, 15),
}
_HALVED = (facula.qint8, facula.int8, facula.quint8, facula.uint8)


def calculate_qmin_qmax(quant_min, quant_max, has_customized_qrange, dtype, reduce_range):
    """The least and the greatest integer of an observer.

    Args:
        quant_min, quant_max (int): as given, where `has_customized_qrange`.
        dtype (facula.dtype): of the quantized tensor.
        reduce_range (bool): whether half of the integers serve, so that sums do not overflow.

    Returns:
        (int, int)

    Example:
        >>> calculate_qmin_qmax(None, None, False, facula.quint8, True)
        (0, 127)
    """
    if not has_customized_qrange:
        low, high = _RANGES.get(dtype, (0, 15))
        halves = reduce_range and dtype in _HALVED
        return (low // 2, high // 2) if halves else (low, high)
    validate_qmin_qmax(quant_min, quant_max)
    length = quant_max - quant_min + 1
    if dtype not in (facula.qint32, facula.int32) and not 0 < length <= 2**16:
        raise AssertionError(f"quantization range must be in (0, 65536]; got {length}")
    return (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)


def validate_qmin_qmax(quant_min, quant_max):
    """AssertionError unless the range of integers holds zero and more than one integer."""
    if not quant_min <= 0 <= quant_max:
        raise AssertionError(f"the range must hold 0; got {quant_min} to {quant_max}")
    if quant_min >= quant_max:
        raise AssertionError(f"qmin must be less than qmax; got {quant_min} and {quant_max}")


def check_min_max_valid(min_val, max_val):
    """Whether an observer has seen values: warns where it has not.

    Raises:
        AssertionError: the least value is above the greatest.
    """
    import warnings

    unseen = min_val.numel() == 0 or max_val.numel() == 0
    if not unseen and min_val.dim() == 0:
        unseen = bool(min_val == float("inf") and max_val == float("-inf"))
    if unseen:
        warnings.warn("calculate_qparams(): the observer has seen no values yet", stacklevel=2)
        return False
    if not bool((min_val <= max_val).all()):
        raise AssertionError(
            f"expected the least value below the greatest; got {min_val} and {max_val}"
        )
    return True


def qparams_of_range(min_val, max_val, quant_min, quant_max, dtype, eps, customized, qscheme):
    """The scale and the zero point as observers give them: in the dtypes of the calculation."""
    if not check_min_max_valid(min_val, max_val):
        return facula.tensor([1.0]), facula.tensor([0])
    steps = float(quant_max - quant_min)
    zero = facula.zeros_like(min_val)
    low, high = facula.minimum(min_val, zero), facula.maximum(max_val, zero)
    zero_point = facula.zeros(low.size(), dtype=facula.int64)
    eps = eps.to(low.dtype)
    if _is_symmetric(qscheme):
        scale = facula.maximum(facula.maximum(-low, high) / (steps / 2), eps)
        if dtype in (facula.quint8, facula.uint8):
            middle = (quant_min + quant_max) // 2 if customized else 128
            zero_point = zero_point.new_full(zero_point.size(), middle)
    elif qscheme is facula.per_channel_affine_float_qparams:
        scale = (max_val - min_val) / steps
        scale = facula.where(scale > eps, scale, facula.ones_like(scale))
        zero_point = -1 * min_val / scale
    else:
        scale = facula.maximum((high - low) / steps, eps)
        zero_point = quant_min - facula.round(low / scale).to(facula.int)
        zero_point = facula.clamp(zero_point, quant_min, quant_max)
    return _as_vector(scale), _as_vector(zero_point)


def determine_qparams(
    min_val,
    max_val,
    quant_min,
    quant_max,
    dtype,
    eps,
    has_customized_qrange,
    qscheme=facula.per_tensor_affine,
):
    """The scale and the zero point for values in [min_val, max_val].

    Returns:
        (Tensor, Tensor): vectors of a scale and a zero point for each channel, or of one.

    Example:
        >>> low, high, eps = facula.tensor(-1.0), facula.tensor(1.0), facula.tensor([1e-7])
        >>> determine_qparams(low, high, 0, 255, facula.quint8, eps, False)
        (tensor([0.0078], dtype=facula.float64), tensor([127]))
    """
    scale, zero_point = qparams_of_range(
        min_val, max_val, quant_min, quant_max, dtype, eps, has_customized_qrange, qscheme
    )
    return scale.to(facula.float64), zero_point.to(facula.int64)


def _as_vector(t):
    return t.reshape(1) if t.dim() == 0 else t
