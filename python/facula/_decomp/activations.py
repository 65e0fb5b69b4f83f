"""Activations and their derivatives, by their definitions."""

from __future__ import annotations

import math

import facula
from facula import Tensor
from facula._decomp import register_decomposition
from facula._decomp.rounding import rounds_once

__all__ = [
    "celu",
    "elu",
    "elu_backward",
    "gelu",
    "gelu_backward",
    "glu",
    "glu_backward",
    "hardshrink",
    "hardsigmoid",
    "hardsigmoid_backward",
    "hardswish",
    "hardswish_backward",
    "hardtanh",
    "hardtanh_backward",
    "leaky_relu",
    "leaky_relu_backward",
    "log_sigmoid_backward",
    "log_sigmoid_forward",
    "logit_backward",
    "mish",
    "mish_backward",
    "prelu",
    "rrelu_with_noise",
    "selu",
    "sigmoid_backward",
    "silu",
    "silu_backward",
    "softmax",
    "softmax_backward",
    "log_softmax",
    "log_softmax_backward",
    "softplus",
    "softplus_backward",
    "softshrink",
    "tanh_backward",
    "threshold",
    "threshold_backward",
]

aten = facula.ops.aten


@register_decomposition(aten.tanh_backward.default)
@rounds_once
def tanh_backward(grad_output: Tensor, output: Tensor):
    return grad_output * (1 - output * output).conj_physical()


@register_decomposition(aten.sigmoid_backward.default)
@rounds_once
def sigmoid_backward(grad_output: Tensor, output: Tensor):
    return grad_output * (output * (1 - output)).conj_physical()


@register_decomposition(aten.silu.default)
@rounds_once
def silu(self: Tensor):
    return self * facula.sigmoid(self)


@register_decomposition(aten.silu_backward.default)
@rounds_once
def silu_backward(grad_output: Tensor, self: Tensor):
    s = facula.sigmoid(self)
    return grad_output * s * (1 + self * (1 - s))


@register_decomposition(aten.mish.default)
@rounds_once
def mish(self: Tensor):
    return self * self.exp().log1p().tanh()


@register_decomposition(aten.mish_backward.default)
@rounds_once
def mish_backward(grad_output: Tensor, self: Tensor):
    t, s = facula.tanh(facula.nn.functional.softplus(self)), facula.sigmoid(self)
    return grad_output * (t + self * s * (1 - t * t))


@register_decomposition(aten.softplus.default)
@rounds_once
def softplus(self: Tensor, beta=1, threshold=20):
    scaled = self * beta
    return facula.where(scaled > threshold, self, facula.log1p(facula.exp(scaled)) / beta)


@register_decomposition(aten.softplus_backward.default)
@rounds_once
def softplus_backward(grad_output: Tensor, self: Tensor, beta, threshold):
    z = facula.exp(self * beta)
    return facula.where(self * beta > threshold, grad_output, grad_output * z / (z + 1))


@register_decomposition(aten.elu.default)
@rounds_once
def elu(self: Tensor, alpha=1, scale=1, input_scale=1):
    negative = facula.expm1(self * input_scale) * (alpha * scale)
    return facula.where(self > 0, self * scale, negative)


@register_decomposition(aten.elu_backward.default)
@rounds_once
def elu_backward(
    grad_output: Tensor, alpha, scale, input_scale, is_result: bool, self_or_result: Tensor
):
    if is_result:
        slope = input_scale * (self_or_result + alpha * scale)
    else:
        slope = input_scale * alpha * scale * facula.exp(self_or_result * input_scale)
    return grad_output * facula.where(self_or_result <= 0, slope, scale)


@register_decomposition(aten.celu.default)
def celu(self: Tensor, alpha=1.0):
    return elu(self, alpha, 1.0, 1.0 / alpha)


@register_decomposition(aten.selu.default)
def selu(self: Tensor):
    # The fixed point of Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    return elu(self, 1.6732632423543772, 1.0507009873554805, 1)


@register_decomposition(aten.relu6.default)
def relu6(self: Tensor):
    return facula.clamp(self, 0, 6)


@register_decomposition(aten.hardtanh.default)
def hardtanh(self: Tensor, min_val=-1, max_val=1):
    return facula.clamp(self, min_val, max_val)


@register_decomposition(aten.hardtanh_backward.default)
def hardtanh_backward(grad_output: Tensor, self: Tensor, min_val, max_val):
    return facula.where((self <= min_val) | (self >= max_val), 0.0, grad_output)


@register_decomposition(aten.hardsigmoid.default)
@rounds_once
def hardsigmoid(self: Tensor):
    return facula.clamp(self + 3, 0, 6) / 6


@register_decomposition(aten.hardsigmoid_backward.default)
@rounds_once
def hardsigmoid_backward(grad_output: Tensor, self: Tensor):
    return facula.where((self > -3.0) & (self < 3.0), grad_output * (1.0 / 6.0), 0.0)


@register_decomposition(aten.hardswish.default)
@rounds_once
def hardswish(self: Tensor):
    return self * facula.clamp(self + 3, 0, 6) / 6


@register_decomposition(aten.hardswish_backward.default)
@rounds_once
def hardswish_backward(grad_output: Tensor, self: Tensor):
    inside = facula.where(self < 3, grad_output * (self / 3 + 0.5), grad_output)
    return facula.where(self <= -3, 0.0, inside)


@register_decomposition(aten.leaky_relu.default)
@rounds_once
def leaky_relu(self: Tensor, negative_slope=0.01):
    return facula.where(self > 0, self, self * negative_slope)


@register_decomposition(aten.leaky_relu_backward.default)
@rounds_once
def leaky_relu_backward(grad_output: Tensor, self: Tensor, negative_slope, self_is_result: bool):
    return facula.where(self > 0, grad_output, grad_output * negative_slope)


@register_decomposition(aten.threshold.default)
def threshold(self: Tensor, threshold, value):
    return facula.where(self <= threshold, value, self)


@register_decomposition(aten.threshold_backward.default)
def threshold_backward(grad_output: Tensor, self: Tensor, threshold):
    return facula.where(self <= threshold, 0, grad_output)


@register_decomposition(aten.hardshrink.default)
def hardshrink(self: Tensor, lambd=0.5):
    return facula.where(facula.abs(self) <= lambd, 0, self)


@register_decomposition(aten.softshrink.default)
@rounds_once
def softshrink(self: Tensor, lambd=0.5):
    small = facula.abs(self) > lambd
    return facula.where(small, self - facula.sign(self) * lambd, self * 0)


@register_decomposition(aten.prelu.default)
def prelu(self: Tensor, weight: Tensor):
    if weight.dim() != 0 and weight.numel() > 1 or self.dim() > 0 and weight.dim() == 1:
        shape = [-1 if d == 1 else 1 for d in range(self.dim())] if self.dim() > 1 else [-1]
        weight = weight.view(shape) if weight.numel() > 1 else weight.view([1] * self.dim())
    return facula.where(self > 0, self, weight * self)


@register_decomposition(aten.rrelu_with_noise.default)
def rrelu_with_noise(
    self: Tensor,
    noise: Tensor,
    lower=0.125,
    upper=0.3333333333333333,
    training=False,
    generator=None,
):
    if not training:
        return leaky_relu(self, (lower + upper) / 2)
    below = self <= 0
    slope = facula.empty_like(self).uniform_(lower, upper, generator=generator)
    noise.copy_(facula.where(below, slope, 1))
    return facula.where(below, self * slope, self)


# Abramowitz and Stegun's normal distribution: GELU is x times its cumulative function
# (Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016).


@register_decomposition(aten.gelu.default)
@rounds_once
def gelu(self: Tensor, approximate="none"):
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (self + 0.044715 * self * self * self)
        return 0.5 * self * (1 + facula.tanh(inner))
    return self * 0.5 * (1 + facula.erf(self * math.sqrt(0.5)))


@register_decomposition(aten.gelu_backward.default)
@rounds_once
def gelu_backward(grad: Tensor, self: Tensor, approximate="none"):
    if approximate == "tanh":
        factor = math.sqrt(2 / math.pi)
        t = facula.tanh(factor * (self + 0.044715 * self * self * self))
        slope = factor * (1 + 3 * 0.044715 * self * self)
        return grad * (0.5 * (1 + t) + 0.5 * self * (1 - t * t) * slope)
    cumulative = 0.5 * (1 + facula.erf(self * math.sqrt(0.5)))
    density = facula.exp(self * self * -0.5) * (1 / math.sqrt(2 * math.pi))
    return grad * (cumulative + self * density)


@register_decomposition(aten.glu.default)
@rounds_once
def glu(self: Tensor, dim=-1):
    a, b = self.chunk(2, dim)
    return a * facula.sigmoid(b)


@register_decomposition(aten.glu_backward.default)
@rounds_once
def glu_backward(grad_output: Tensor, self: Tensor, dim: int):
    a, b = self.chunk(2, dim)
    s = facula.sigmoid(b)
    return facula.cat([grad_output * s, grad_output * s * (1 - s) * a], dim)


@register_decomposition(aten.log_sigmoid_forward.default)
@rounds_once
def log_sigmoid_forward(self: Tensor):
    smallest = facula.minimum(self.new_zeros(()), self)
    # The operator keeps nothing for its derivative.
    return smallest - facula.log1p(facula.exp(-facula.abs(self))), self.new_zeros((0,))


@register_decomposition(aten.log_sigmoid_backward.default)
@rounds_once
def log_sigmoid_backward(grad_output: Tensor, self: Tensor, buffer: Tensor):
    negative = self < 0
    most, sign = facula.where(negative, 1, 0), facula.where(negative, 1, -1)
    z = facula.exp(-facula.abs(self))
    return grad_output * (most - sign * (z / (1 + z)))


@register_decomposition(aten.logit_backward.default)
@rounds_once
def logit_backward(grad_output: Tensor, self: Tensor, eps=None):
    low, high = (0.0, 1.0) if eps is None else (eps, 1.0 - eps)
    outside = 0.0 if eps is not None else math.nan
    slope = grad_output / (self * (1.0 - self))
    return facula.where((self >= low) & (self <= high), slope, outside)


@register_decomposition(aten._softmax.default)
@rounds_once
def softmax(x: Tensor, dim: int, half_to_float: bool):
    if x.numel() == 0:
        e = facula.exp(x)
    else:
        e = facula.exp(x - facula.amax(x, dim, keepdim=True))
    return e / facula.sum(e, dim, keepdim=True)


@register_decomposition(aten._log_softmax.default)
@rounds_once
def log_softmax(x: Tensor, dim: int, half_to_float: bool):
    shifted = x if x.numel() == 0 else x - facula.amax(x, dim, keepdim=True)
    return shifted - facula.log(facula.sum(facula.exp(shifted), dim, keepdim=True))


@register_decomposition(aten._softmax_backward_data.default)
@rounds_once
def softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype):
    weighted = grad_output * output
    return weighted - output * facula.sum(weighted, dim, keepdim=True)


@register_decomposition(aten._log_softmax_backward_data.default)
@rounds_once
def log_softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype):
    return grad_output - facula.exp(output) * facula.sum(grad_output, dim, keepdim=True)
