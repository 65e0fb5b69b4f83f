"""Reductions and normalizations of tensors of which a mask says what counts.

Where a mask is True an element takes part; the others are set to what leaves the result as it is (0
in a sum, 1 in a product, -inf in a maximum). A slice without any element that counts gives that
identity, or nan where there is none: in means, variances, medians and softmaxes.

The mask is a tensor that broadcasts to the input's shape and has no more dimensions; None means
that all elements count. A MaskedTensor brings its own mask.
"""

from __future__ import annotations

import facula

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

# What the sum and the product of narrow integers are computed in.
_NARROW = (facula.bool, facula.uint8, facula.int8, facula.int16, facula.int32)


def _lowest(name, dtype):
    """What no element is less than: the identity of a maximum."""
    return _limit(name, dtype, "min")


def _highest(name, dtype):
    """What no element is greater than: the identity of a minimum."""
    return _limit(name, dtype, "max")


def _limit(name, dtype, which):
    if dtype.is_floating_point:
        return -facula.inf if which == "min" else facula.inf
    if dtype == facula.bool:
        raise NotImplementedError(f"masked.{name}(): expected numbers; got a tensor of bool")
    if dtype.is_complex:
        raise TypeError(f"masked.{name}(): expected real numbers; got a tensor of {dtype}")
    return getattr(facula.iinfo(dtype), which)


def _unmasked(input, mask):
    """(data, mask) of what may be a MaskedTensor: both masks together."""
    from facula.masked import is_masked_tensor

    if not is_masked_tensor(input):
        return input, mask
    own = input.get_mask()
    return input.get_data(), own if mask is None else mask.bool() & own


def _full_mask(name, input, mask):
    """The mask in bool and of the input's shape; None where there is none."""
    if mask is None:
        return None
    if len(mask.shape) > input.ndim:
        raise IndexError(
            f"masked.{name}(): the mask must not have more dimensions than the input; "
            f"got {len(mask.shape)} and {input.ndim}"
        )
    return facula.broadcast_to(mask, input.shape).to(facula.bool)


def _filled(name, input, mask, value):
    """(input, mask) with `value` where the mask is False; value may be a function of the dtype."""
    input, mask = _unmasked(input, mask)
    mask = _full_mask(name, input, mask)
    if mask is None:
        return input, None
    if callable(value):
        value = value(name, input.dtype)
    return facula.where(mask, input, facula.full_like(input, value, requires_grad=False)), mask


def _dims(dim, ndim):
    """The dimensions as a tuple of numbers from 0; None and () mean all. Repeats raise."""
    if dim is None or (not isinstance(dim, int) and len(tuple(dim)) == 0):
        return tuple(range(ndim))
    found = []
    least = max(ndim, 1)
    for d in (dim,) if isinstance(dim, int) else tuple(dim):
        if not -least <= d < least:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-least}, {least - 1}], "
                f"but got {d})"
            )
        d %= least
        if d in found:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        found.append(d)
    return tuple(found)


def _one_dim(dim, ndim):
    return next(iter(_dims(dim, ndim)), 0)


def _wide(dtype):
    return facula.int64 if dtype in _NARROW else dtype


_ARGUMENTS = {
    "dims": "dim (int or tuple of int, optional): dimensions to reduce; None and () mean all.",
    "one": "dim (int): the dimension along which to go.",
    "keepdim": "keepdim (bool): whether reduced dimensions stay, with size 1.",
    "dtype": "dtype (dtype, optional): of the result; by default what the input's gives.",
    "mask": "mask (Tensor, optional): of bool; where it is True an element counts.",
}


def _described(*arguments, returns):
    """Puts what the functions have in common into a docstring, before its example."""
    lines = ["input (Tensor or MaskedTensor): of any shape."]
    lines += [_ARGUMENTS.get(argument, argument) for argument in arguments]
    block = "\n".join(f"        {line}" for line in lines)
    common = f"Args:\n{block}\n\n    Returns:\n        {returns}\n\n    Raises:\n        "
    common += (
        "IndexError: for a dimension out of range, or a mask of more dimensions than the input."
    )

    def describe(function):
        sentence, mark, example = function.__doc__.partition("    Example:")
        function.__doc__ = f"{sentence}    {common}\n\n{mark}{example}"
        return function

    return describe


_reduction = _described(
    "dims", "keepdim", "dtype", "mask", returns="Tensor: without the reduced dimensions."
)
_along = _described("one", "dtype", "mask", returns="Tensor of the input's shape.")


@_reduction
def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The sum of the elements that count; 0 where none does.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.sum(facula.tensor([1.0, 2.0, 3.0]), mask=mask)
        tensor(4.)
    """
    dtype = _wide(input.dtype) if dtype is None else dtype
    input, _ = _filled("sum", input, mask, 0)
    return facula.sum(input, _dims(dim, input.ndim), bool(keepdim), dtype=dtype)


@_reduction
def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The product of the elements that count; 1 where none does.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.prod(facula.tensor([2.0, 0.0, 3.0]), mask=mask)
        tensor(6.)
    """
    dtype = input.dtype if dtype is None else dtype
    input, _ = _filled("prod", input, mask, 1)
    result = input.to(dtype)
    for d in sorted(_dims(dim, input.ndim), reverse=True):
        result = result.prod(d, bool(keepdim))
    return result.to(_wide(dtype))


@_along
def cumsum(input, dim, *, dtype=None, mask=None):
    """The running sums of the elements that count.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.cumsum(facula.tensor([1.0, 2.0, 3.0]), 0, mask=mask)
        tensor([1., 1., 4.])
    """
    dtype = input.dtype if dtype is None else dtype
    dim = _one_dim(dim, input.ndim)
    return facula.cumsum(_filled("cumsum", input, mask, 0)[0], dim, dtype=dtype)


@_along
def cumprod(input, dim, *, dtype=None, mask=None):
    """The running products of the elements that count.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.cumprod(facula.tensor([2.0, 0.0, 3.0]), 0, mask=mask)
        tensor([2., 2., 6.])
    """
    dtype = input.dtype if dtype is None else dtype
    dim = _one_dim(dim, input.ndim)
    return facula.cumprod(_filled("cumprod", input, mask, 1)[0], dim, dtype=dtype)


@_reduction
def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The greatest of the elements that count; -inf, or the least integer, where none does.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.amax(facula.tensor([1.0, 9.0, 3.0]), mask=mask)
        tensor(3.)
    """
    dtype = input.dtype if dtype is None else dtype
    input, _ = _filled("amax", input, mask, _lowest)
    return facula.amax(input, _dims(dim, input.ndim), bool(keepdim)).to(dtype)


@_reduction
def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The least of the elements that count; inf, or the greatest integer, where none does.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.amin(facula.tensor([2.0, 0.0, 3.0]), mask=mask)
        tensor(2.)
    """
    dtype = input.dtype if dtype is None else dtype
    input, _ = _filled("amin", input, mask, _highest)
    return facula.amin(input, _dims(dim, input.ndim), bool(keepdim)).to(dtype)


_index = _described(
    "dim (int, optional): the dimension; by default that of the flattened input.",
    "keepdim",
    "dtype",
    "mask",
    returns="Tensor of the input's dtype: the position; 0 where no element counts.",
)


@_index
def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Where the greatest of the elements that count stands.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.argmax(facula.tensor([1, 9, 3]), mask=mask)
        tensor(2)
    """
    dtype = input.dtype if dtype is None else dtype
    input, _ = _filled("argmax", input, mask, _lowest)
    return facula.argmax(input, dim, bool(keepdim)).to(dtype)


@_index
def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Where the least of the elements that count stands.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.argmin(facula.tensor([5, 0, 3]), mask=mask)
        tensor(2)
    """
    dtype = input.dtype if dtype is None else dtype
    input, _ = _filled("argmin", input, mask, _highest)
    return facula.argmin(input, dim, bool(keepdim)).to(dtype)


def _count(input, mask, dims):
    """How many elements count in each slice, with reduced dimensions kept."""
    counted = facula.ones_like(input, dtype=facula.int64, requires_grad=False)
    if mask is not None:
        counted = mask.to(facula.int64)
    return counted.sum(dims, True)


def _reduced(result, dims, keepdim):
    """A result with kept dimensions as the caller asked for it."""
    return result if keepdim else result.squeeze(dims)


@_reduction
def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The mean of the elements that count; nan where none does.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.mean(facula.tensor([1.0, 9.0, 3.0]), mask=mask)
        tensor(2.)
    """
    dtype = input.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"masked.mean(): expected floating-point or complex numbers; got {dtype}")
    input, mask = _filled("mean", input, mask, 0)
    dims = _dims(dim, input.ndim)
    total = facula.sum(input, dims, True, dtype=dtype)
    return _reduced(total / _count(input, mask, dims), dims, keepdim)


@_reduction
def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The logarithm of the sum of exponentials of the elements that count; -inf where none does.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.logsumexp(facula.tensor([0.0, 9.0, 0.0]), mask=mask)
        tensor(0.6931)
    """
    dtype = input.dtype if dtype is None else dtype

    def identity(name, kind):
        return -facula.inf if kind.is_complex else _lowest(name, kind)

    input, _ = _filled("logsumexp", input, mask, identity)
    dims = _dims(dim, input.ndim)
    return facula.logsumexp(input, dims, bool(keepdim)).to(dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """The logarithm of the sum of exponentials of two tensors, elementwise.

    Args:
        input (Tensor or MaskedTensor): of any shape.
        other (Tensor or MaskedTensor): of a shape that broadcasts with it.
        dtype (dtype, optional): of the result; by default the input's.
        input_mask (Tensor, optional): where it is False, `input` counts as -inf.
        other_mask (Tensor, optional): the same of `other`.

    Returns:
        Tensor

    Raises:
        IndexError: for a mask of more dimensions than its tensor.

    Example:
        >>> mask = facula.tensor([True, False])
        >>> facula.masked.logaddexp(facula.zeros(2), facula.zeros(2), input_mask=mask)
        tensor([0.6931, 0.0000])
    """
    dtype = input.dtype if dtype is None else dtype
    input, _ = _filled("logaddexp", input, input_mask, _lowest)
    other, _ = _filled("logaddexp", other, other_mask, _lowest)
    return facula.logaddexp(input, other).to(dtype)


@_described(
    "ord (float): the order of the norm; 2 by default.",
    "dims",
    "keepdim",
    "dtype",
    "mask",
    returns="Tensor: without the reduced dimensions.",
)
def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The vector norm of the elements that count; where none does 0, or inf for ord -inf.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.norm(facula.tensor([3.0, 9.0, 4.0]), mask=mask)
        tensor(5.)
    """
    _check_order("norm", ord)
    identity = _highest if ord == -facula.inf else 0
    input, _ = _filled("norm", input, mask, identity)
    dims = _dims(dim, input.ndim)
    return facula.linalg.vector_norm(input, ord, dims, bool(keepdim), dtype=dtype)


def _check_order(name, ord):
    if not isinstance(ord, (int, float)):
        raise TypeError(f"masked.{name}(): ord must be a number; got {type(ord).__name__}")


@_described(
    "ord (float): the order of the norm.",
    "one",
    "eps (float): the least that is divided by.",
    "dtype",
    "mask",
    returns="Tensor of the input's shape; 0 where an element does not count.",
)
def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """The elements that count, divided by their norm along a dimension.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.normalize(facula.tensor([3.0, 9.0, 4.0]), 2.0, 0, mask=mask)
        tensor([0.6000, 0.0000, 0.8000])
    """
    dtype = input.dtype if dtype is None else dtype
    dim = _one_dim(dim, input.ndim)
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    least = facula.tensor(eps, dtype=length.dtype, device=length.device)
    input, _ = _filled("normalize", input, mask, 0)
    return input / facula.maximum(length, least)


@_described(
    "dim (int): the dimension to reduce; the last by default.",
    "keepdim",
    "dtype (dtype, optional): of the result for integers; floating-point numbers keep theirs.",
    "mask",
    returns="Tensor: without the reduced dimension.",
)
def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The median of the elements that count, the lower one of two; nan where none does.

    Example:
        >>> mask = facula.tensor([True, False, True, True])
        >>> facula.masked.median(facula.tensor([1.0, 9.0, 3.0, 2.0]), mask=mask)
        tensor(2.)
    """
    dtype = input.dtype if dtype is None else dtype
    input, mask = _unmasked(input, mask)
    dim = _one_dim(dim, input.ndim)
    whole = not input.is_floating_point()
    input = input.to(facula.float32) if whole else input
    if mask is None:
        result = facula.median(input, dim, bool(keepdim)).values
        return result.to(dtype) if whole else result
    input, _ = _filled("median", input, mask, facula.nan)
    result = facula.nanmedian(input, dim, bool(keepdim)).values
    if not whole:
        return result
    if not dtype.is_floating_point and facula.any(facula.isnan(result)):
        raise ValueError(
            f"masked.median(): a slice without elements that count has no median in {dtype}"
        )
    return result.to(dtype)


def _softmax(name, input, dim, dtype, mask, identity, function):
    dtype = input.dtype if dtype is None else dtype
    dim = _one_dim(dim, input.ndim)
    input, _ = _filled(name, input, mask, identity)
    return function(input, dim, dtype=dtype)


@_along
def softmax(input, dim, *, dtype=None, mask=None):
    """The softmax of the elements that count; the others are 0, or nan where none counts.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.softmax(facula.tensor([1.0, 9.0, 1.0]), 0, mask=mask)
        tensor([0.5000, 0.0000, 0.5000])
    """
    return _softmax("softmax", input, dim, dtype, mask, _lowest, facula.nn.functional.softmax)


@_along
def log_softmax(input, dim, *, dtype=None, mask=None):
    """The logarithm of the softmax of the elements that count; the others are -inf.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.log_softmax(facula.tensor([1.0, 9.0, 1.0]), 0, mask=mask)
        tensor([-0.6931,    -inf, -0.6931])
    """
    function = facula.nn.functional.log_softmax
    return _softmax("log_softmax", input, dim, dtype, mask, _lowest, function)


@_along
def softmin(input, dim, *, dtype=None, mask=None):
    """The softmax of the negated elements that count; the others are 0.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.softmin(facula.tensor([1.0, 9.0, 1.0]), 0, mask=mask)
        tensor([0.5000, 0.0000, 0.5000])
    """
    return _softmax("softmin", input, dim, dtype, mask, _highest, facula.nn.functional.softmin)


_spread = _described(
    "dims",
    "unbiased (bool, optional): True means correction=1, False correction=0.",
    "correction (float, optional): what is taken off the count; 1 by default.",
    "keepdim",
    "dtype",
    "mask",
    returns="Tensor: without the reduced dimensions; nan where no element counts.",
)


@_spread
def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The variance of the elements that count.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.var(facula.tensor([1.0, 9.0, 3.0]), mask=mask)
        tensor(2.)
    """
    if unbiased is not None and correction is not None:
        raise AssertionError("masked.var(): expected unbiased or correction; got both")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    if input.dtype == facula.bool:
        raise NotImplementedError("masked.var(): expected numbers; got a tensor of bool")
    numbers = input.dtype.is_floating_point or input.dtype.is_complex
    computed = input.dtype if numbers else facula.float32
    computed = computed if dtype is None else dtype
    input, mask = _unmasked(input, mask)
    data, mask = _filled("var", input, mask, 0)
    dims = _dims(dim, data.ndim)
    count = _count(data, mask, dims)
    mean = facula.sum(data, dims, True, dtype=computed) / count
    off = input - mean
    squares, _ = _filled("var", off * off.conj() if off.is_complex() else off * off, mask, 0)
    total = facula.sum(squares, dims, True, dtype=computed)
    divisor = facula.clamp(count - correction, min=0)
    return _reduced(total / divisor, dims, keepdim).to(computed)


@_spread
def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The standard deviation of the elements that count.

    Example:
        >>> mask = facula.tensor([True, False, True])
        >>> facula.masked.std(facula.tensor([1.0, 9.0, 3.0]), mask=mask)
        tensor(1.4142)
    """
    options = dict(correction=correction, keepdim=keepdim, dtype=dtype, mask=mask)
    return facula.sqrt(var(input, dim, unbiased, **options))


# --- masks of inputs and results, which test suites of PyTorch ask for by these names

_SAME_SHAPE = frozenset("cumsum cumprod softmax log_softmax softmin normalize".split())


def _input_mask(input, *args, **kwargs):
    """The mask among a call's arguments, in bool and of the input's shape."""
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("_input_mask(): expected a mask; got none")
    return _full_mask("_input_mask", input, mask)


def _output_mask(op, input, *args, **kwargs):
    """Where the result of a call of this module has an element that counts."""
    name = getattr(op, "__name__", "")
    if name not in __all__ or name == "logaddexp":
        raise ValueError(f"_output_mask(): expected a function of facula.masked; got {op}")
    mask = _input_mask(input, *args, **kwargs)
    if name in _SAME_SHAPE:
        return mask
    args = args[1:] if name == "norm" else args
    dims = _dims(args[0] if args else kwargs.get("dim"), input.ndim)
    return mask.any(dims, bool(kwargs.get("keepdim"))) if input.ndim else mask
