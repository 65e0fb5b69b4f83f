"""out_dtype: an operator whose result has another dtype than its arguments."""

from __future__ import annotations

import functools

import facula
from facula._higher_order_ops import _functional
from facula._higher_order_ops._capture import mode_that_records, record
from facula._higher_order_ops._operator import HigherOrderOperator

_ALLOWED = (
    "linear.default",
    "mm.default",
    "conv2d.default",
    "convolution.default",
    "mul.Tensor",
    "mul.Scalar",
    "div.Tensor",
    "div.Scalar",
)


def out_dtype(op, output_dtype, *args):
    """An operator computed in a dtype that holds its arguments' and the result's.

    Products of int8 matrices with int32 results are the use: the product does not wrap around.

    Args:
        op (OpOverload): a product, a linear map or a convolution.
        output_dtype (dtype): of the result.
        *args: what `op` takes.

    Returns:
        Tensor

    Raises:
        ValueError: `op` is no such operator.

    Example:
        >>> from facula._higher_order_ops.out_dtype import out_dtype
        >>> a = facula.full((1, 2), 100, dtype=facula.int8)
        >>> out_dtype(facula.ops.aten.mm.default, facula.int32, a, a.t())
        tensor([[20000]], dtype=facula.int32)
    """
    _check(op)
    mode = mode_that_records()
    if mode is None:
        return _computed(op, output_dtype, args)
    if _functional.any_of(args):
        return _functional.call(lambda *plain: [out_dtype(op, output_dtype, *plain)], *args)[0]
    needs = any(isinstance(a, facula.Tensor) and a.requires_grad for a in args)
    if needs and facula.is_grad_enabled() and not mode.pre_dispatch:
        raise NotImplementedError(
            "out_dtype(): gradients of calls that are recorded into a graph are not supported; got "
            "a tensor that requires one"
        )
    return record(
        mode,
        out_dtype_op,
        (op, output_dtype, *args),
        lambda: _computed(op, output_dtype, args),
    )


def _check(op):
    if not isinstance(op, facula._C.OpOverload):
        raise ValueError(f"out_dtype(): expected an OpOverload; got {op!r}")
    if op._schema.is_mutable:
        raise ValueError(f"out_dtype(): expected an operator that changes nothing; got {op}")
    if op.namespace != "aten" or str(op).partition(".")[2] not in _ALLOWED:
        raise ValueError(f"out_dtype(): expected one of {list(_ALLOWED)}; got {op}")


def _computed(op, output_dtype, args):
    dtypes = [a.dtype for a in args if isinstance(a, facula.Tensor)]
    wide = functools.reduce(facula.promote_types, dtypes, output_dtype)
    given = [a.to(wide) if isinstance(a, facula.Tensor) else a for a in args]
    return op(*given).to(output_dtype)


out_dtype_op = HigherOrderOperator("out_dtype", out_dtype)
