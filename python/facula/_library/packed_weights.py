"""Weights of quantized layers as the kernels read them, packed once for many calls."""

from __future__ import annotations

import facula

_DIMS_OF_SPACE = {3: 1, 4: 2, 5: 3}


def _scales_of(weight):
    """(scales, zero points) as vectors: one for the whole weight, or one for each output."""
    if weight.qscheme() is facula.per_tensor_affine:
        scales = facula.tensor([weight.q_scale()], dtype=facula.float64)
        return scales, facula.tensor([weight.q_zero_point()])
    return weight.q_per_channel_scales(), weight.q_per_channel_zero_points()


def _check_weight(weight, function, dims):
    if not isinstance(weight, facula.Tensor) or weight.dtype is not facula.qint8:
        found = getattr(weight, "dtype", type(weight).__name__)
        raise RuntimeError(f"{function}: expected a weight of qint8; got {found}")
    if weight.dim() not in dims:
        raise RuntimeError(
            f"{function}: The weight tensor for {function} should have {dims} dimensions; "
            f"got {weight.dim()}"
        )
    if weight.qscheme() is facula.per_channel_affine and weight.q_per_channel_axis() != 0:
        raise RuntimeError(
            f"{function}: expected channels along dimension 0; got {weight.q_per_channel_axis()}"
        )


class LinearPackedParamsBase:
    """The weight (out, in) of qint8 and bias of a linear layer."""

    def __init__(self, weight, bias=None):
        _check_weight(weight, "quantized::linear_prepack", (2,))
        self.weight, self.bias = weight, bias
        self.scales, self.zero_points = _scales_of(weight)
        integers = facula.ops.aten._shared_int_repr(weight)
        self.packed, self.sums = facula.ops.aten._quantized_pack(integers.unsqueeze(0))

    @property
    def parts(self):
        """What kernels take."""
        return self.packed, self.sums, self.scales, self.zero_points, self.bias

    def unpack(self):
        """(weight, bias)"""
        return self.weight, self.bias

    def __reduce__(self):
        return type(self), (self.weight, self.bias)

    def __deepcopy__(self, memo):
        return self  # it never changes


class HalfLinearParams(LinearPackedParamsBase):
    """The weight and bias of a linear layer, rounded to float16."""

    def __init__(self, weight, bias=None):
        if weight.dtype is not facula.float32:
            raise RuntimeError(f"linear_prepack_fp16: expected float32; got {weight.dtype}")
        self.weight, self.bias = weight.half().float(), bias


class ConvPackedParamsBase:
    """The weight (out, in / groups, *kernel) of qint8, bias and geometry of a convolution."""

    def __init__(self, weight, bias, stride, padding, dilation, groups, dims):
        _check_weight(weight, f"quantized::conv{dims}d_prepack", (dims + 2,))
        if groups < 1 or weight.size(0) % groups:
            raise RuntimeError(
                f"conv_prepack: expected outputs divisible by groups; got {weight.size(0)} and "
                f"{groups}"
            )
        self.weight_, self.bias_, self.groups_ = weight, bias, groups
        self.stride_, self.padding_, self.dilation_ = list(stride), list(padding), list(dilation)
        self.scales, self.zero_points = _scales_of(weight)
        # The channels innermost, each group's outputs together.
        integers = facula.ops.aten._shared_int_repr(weight)
        inner = integers.permute(0, *range(2, dims + 2), 1)
        rows = inner.reshape(groups, weight.size(0) // groups, -1)
        self.packed, self.sums = facula.ops.aten._quantized_pack(rows)

    def run(self, x, scale, zero_point, relu):
        """The convolution of a quint8 tensor (N, C, *)."""
        parts = (self.packed, self.sums, self.scales, self.zero_points, self.bias_)
        geometry = (self.weight_.shape[2:], self.stride_, self.padding_, self.dilation_)
        convolve = facula.ops.aten._quantized_convolution
        return convolve(x, *parts, *geometry, scale, zero_point, relu)

    def unpack(self):
        """(weight, bias)"""
        return self.weight_, self.bias_

    def weight(self):
        return self.weight_

    def bias(self):
        return self.bias_

    def stride(self):
        return self.stride_

    def padding(self):
        return self.padding_

    def dilation(self):
        return self.dilation_

    def groups(self):
        return self.groups_

    def __reduce__(self):
        geometry = (self.stride_, self.padding_, self.dilation_, self.groups_)
        return type(self), (self.weight_, self.bias_, *geometry, self.weight_.dim() - 2)

    def __deepcopy__(self, memo):
        return self  # it never changes


class ConvTransposePackedParams:
    """The weight (in, out / groups, *kernel) of qint8, bias and geometry of a transposed convolution."""  # noqa: E501

    def __init__(self, weight, bias, stride, padding, output_padding, dilation, groups, dims):
        function = f"quantized::conv_transpose{dims}d_prepack"
        if not isinstance(weight, facula.Tensor) or weight.dtype is not facula.qint8:
            found = getattr(weight, "dtype", type(weight).__name__)
            raise RuntimeError(f"{function}: expected a weight of qint8; got {found}")
        if weight.dim() != dims + 2:
            raise RuntimeError(
                f"{function}: expected a weight of {dims + 2} dimensions; got {weight.dim()}"
            )
        if groups < 1 or weight.size(0) % groups:
            raise RuntimeError(
                f"{function}: expected inputs divisible by groups; got {weight.size(0)} and "
                f"{groups}"
            )
        if weight.qscheme() is not facula.per_tensor_affine:
            raise RuntimeError(f"{function}: expected one scale for the weight; got one by channel")
        self.weight_, self.bias_, self.groups_ = weight, bias, groups
        self.stride_, self.padding_, self.dilation_ = list(stride), list(padding), list(dilation)
        self.output_padding_ = list(output_padding)

    def _convolve(self, values, weight, bias):
        from facula.nn import functional as F

        convolve = getattr(F, f"conv_transpose{self.weight_.dim() - 2}d")
        geometry = (self.stride_, self.padding_, self.output_padding_)
        return convolve(values, weight, bias, *geometry, self.groups_, self.dilation_)

    def run(self, x, scale, zero_point, relu=False):
        """The transposed convolution of a quint8 tensor (N, C, *)."""
        if x.dtype is not facula.quint8:
            raise RuntimeError(f"quantized::conv_transpose: expected quint8; got {x.dtype}")
        # Sums of products of bytes are exact in float64.
        values = x.int_repr().double() - x.q_zero_point()
        weight = self.weight_.int_repr().double() - self.weight_.q_zero_point()
        unit = x.q_scale() * self.weight_.q_scale()
        bias = None if self.bias_ is None else (self.bias_.detach().double() / unit)
        sums = self._convolve(values, weight, bias).float() * (unit / scale)
        integers = (sums.round() + zero_point).clamp(zero_point if relu else 0, 255)
        integers = integers.to(facula.uint8)
        return facula._make_per_tensor_quantized_tensor(integers, scale, zero_point)

    def unpack(self):
        """(weight, bias)"""
        return self.weight_, self.bias_

    def weight(self):
        return self.weight_

    def bias(self):
        return self.bias_

    def stride(self):
        return self.stride_

    def padding(self):
        return self.padding_

    def output_padding(self):
        return self.output_padding_

    def dilation(self):
        return self.dilation_

    def groups(self):
        return self.groups_

    def transpose(self):
        return True

    def __reduce__(self):
        geometry = (self.stride_, self.padding_, self.output_padding_, self.dilation_)
        parts = (self.weight_, self.bias_, *geometry, self.groups_, self.weight_.dim() - 2)
        return type(self), parts

    def __deepcopy__(self, memo):
        return self  # it never changes


class EmbeddingPackedParamsBase:
    """The weight (rows, columns) of quint8 or quint4x2 of an embedding, quantized by rows."""

    def __init__(self, weight):
        if weight.dtype not in (facula.quint8, facula.quint4x2):
            raise RuntimeError(f"embedding_bag_prepack: expected quint8; got {weight.dtype}")
        self.weight = weight

    def unpack(self):
        return self.weight

    def rows(self, indices):
        """The rows of these indices (any shape) as floats."""
        scheme, weight = self.weight.qscheme(), self.weight
        if scheme is facula.per_tensor_affine:
            return weight.dequantize()[indices]
        if weight.dtype is facula.quint4x2:
            return self._rows_of_halves(indices)
        integers = facula.ops.aten._shared_int_repr(weight)[indices].float()
        scales = weight.q_per_channel_scales().float()[indices].unsqueeze(-1)
        zeros = weight.q_per_channel_zero_points().float()[indices].unsqueeze(-1)
        return (integers - zeros) * scales

    def _rows_of_halves(self, indices):
        """Rows of 4 bits, whose scale and offset PyTorch keeps in float16 beside them."""
        weight = self.weight
        scales = weight.q_per_channel_scales().float().unsqueeze(-1)
        zeros = weight.q_per_channel_zero_points().float().unsqueeze(-1)
        integers = (weight.dequantize() / scales + zeros).round()
        offsets = (-zeros * scales).half().float()
        return (integers * scales.half().float() + offsets)[indices]

    def __reduce__(self):
        return type(self), (self.weight,)

    def __deepcopy__(self, memo):
        return self  # it never changes
