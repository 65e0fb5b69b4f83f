"""Transposed convolutions of quantized numbers, and convolutions with a sum."""

from __future__ import annotations

from facula.nn import functional as F

from .packed_weights import ConvTransposePackedParams
from .quantized_operators import _operator, _quantized, _reader, in_bytes


def _define(dims):
    name = f"conv_transpose{dims}d"

    def prepack(weight, bias, stride, padding, output_padding, dilation, groups):
        geometry = (stride, padding, output_padding, dilation, groups)
        return ConvTransposePackedParams(weight, bias, *geometry, dims)

    def run(qx, packed_weight, output_scale, output_zero_point):
        return packed_weight.run(qx, float(output_scale), int(output_zero_point))

    def dynamic(qx, packed_weight, reduce_range=False):
        return in_bytes(qx, packed_weight, reduce_range)

    prepack.__doc__ = f"The weight and bias of a transposed convolution over {dims} dimensions."
    run.__doc__ = f"A transposed convolution of quint8 over {dims} dimensions."
    dynamic.__doc__ = f"A transposed convolution of floats over {dims} dimensions."
    _operator(prepack, f"{name}_prepack")
    _operator(run, name)
    _operator(dynamic, f"{name}_dynamic")
    _operator(lambda packed_weights: packed_weights.unpack(), f"{name}_unpack")
    for fact in ("stride", "padding", "output_padding", "dilation", "groups"):
        _operator(_reader(fact), f"{name}_{fact}")
    _operator(_reader("transpose"), f"{name}_transpose")


for _dims in (1, 2, 3):
    _define(_dims)


def _with_sum(qx, qaccum, packed_weight, output_scale, output_zero_point, finish):
    p = packed_weight
    geometry = (p.stride_, p.padding_, p.dilation_, p.groups_)
    values = F.conv2d(qx.dequantize(), p.weight_.dequantize(), p.bias_, *geometry)
    values = finish(values + qaccum.dequantize())
    return _quantized(values, output_scale, output_zero_point, qx)


@_operator
def conv2d_add(qx, qaccum, packed_weight, output_scale, output_zero_point):
    """A convolution of quint8 and the sum with another tensor; the result is quantized anew."""
    args = (output_scale, output_zero_point, lambda values: values)
    return _with_sum(qx, qaccum, packed_weight, *args)


@_operator
def conv2d_add_relu(qx, qaccum, packed_weight, output_scale, output_zero_point):
    """conv2d_add and what is positive of its result."""
    return _with_sum(qx, qaccum, packed_weight, output_scale, output_zero_point, F.relu)
