"""Tensors of random values for tests."""

from __future__ import annotations

import facula


def make_tensor(
    *shape,
    dtype,
    device,
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """A tensor of values drawn evenly from [low, high).

    Args:
        shape (int or sequence of ints): its sizes.
        dtype (facula.dtype), device (str): its kind and place.
        low, high (number): -9 and 9 for floats, -9 and 10 for ints, 0 and 10 for unsigned ones
            unless given.
        requires_grad (bool): whether gradients are wanted; floats only.
        noncontiguous (bool): elements lie two apart in memory.
        exclude_zero (bool): zeros become the smallest positive number (1 for ints).
        memory_format (facula.memory_format): how it lies in memory.

    Raises:
        ValueError: low is above high; gradients of ints; both `noncontiguous` and
            `memory_format`.

    Example:
        >>> x = make_tensor(2, 3, dtype=facula.int64, device="cpu", low=5, high=6)
        >>> x.tolist()
        [[5, 5, 5], [5, 5, 5]]
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    fractional = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not fractional:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"{dtype}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError("make_tensor(): noncontiguous and memory_format exclude each other")
    low, high = _range(dtype, low, high)
    # Of twice as many columns every second one is taken, so that elements lie two apart.
    spread = noncontiguous and 0 not in sizes and len(sizes) > 0
    drawn = (*sizes[:-1], 2 * sizes[-1]) if spread else sizes
    result = _drawn(drawn, dtype, device, low, high)
    if spread:
        result = result[..., 1::2]
    if exclude_zero:
        result[result == 0] = facula.finfo(dtype).tiny if fractional else 1
    if memory_format is not None:
        result = result.clone(memory_format=memory_format)
    return result.requires_grad_(requires_grad) if fractional else result


def _range(dtype, low, high):
    if dtype == facula.bool:
        first = (0, 2)
    elif dtype.is_floating_point or dtype.is_complex:
        first = (-9, 9)
    else:
        first = (-9, 10) if dtype.is_signed else (0, 10)
    low, high = (first[0] if low is None else low), (first[1] if high is None else high)
    if low != low or high != high:
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    if low > high:
        raise ValueError(
            f"`low` must not be greater than `high`, but got {low} > {high} for {dtype}"
        )
    return low, high


def _drawn(sizes, dtype, device, low, high):
    if low == high:
        return facula.full(sizes, low, dtype=dtype, device=device)
    if dtype.is_complex:
        result = facula.empty(sizes, dtype=dtype, device=device)
        facula.view_as_real(result).uniform_(low, high)
        return result
    if dtype.is_floating_point:
        return facula.empty(sizes, dtype=dtype, device=device).uniform_(low, high)
    return facula.randint(int(low), int(high), sizes, dtype=dtype, device=device)
