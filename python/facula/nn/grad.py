"""Gradients of convolutions as functions."""

from __future__ import annotations

import facula
from facula.nn.modules.utils import _pair, _single, _triple


def _make(dims, wants_input):
    per_dim = {1: _single, 2: _pair, 3: _triple}[dims]

    def gradient(input, weight, grad_output, stride, padding, dilation, groups):
        mask = (wants_input, not wants_input, False)
        results = facula.ops.aten.convolution_backward(
            grad_output,
            input,
            weight,
            None,
            per_dim(stride),
            per_dim(padding),
            per_dim(dilation),
            False,
            [0] * dims,
            groups,
            mask,
        )
        return results[0 if wants_input else 1]

    if wants_input:

        def function(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
            input = grad_output.new_empty(1).expand(input_size)
            return gradient(input, weight, grad_output, stride, padding, dilation, groups)

    else:

        def function(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
            weight = grad_output.new_empty(1).expand(weight_size)
            return gradient(input, weight, grad_output, stride, padding, dilation, groups)

    what = "input" if wants_input else "weight"
    function.__name__ = function.__qualname__ = f"conv{dims}d_{what}"
    given = {True: ("input_size", "weight"), False: ("input", "weight_size")}[wants_input]
    function.__doc__ = f"""The gradient of a {dims}-D convolution for its {what}.

    Args:
        {given[0]}, {given[1]}: a Tensor, and the shape of the other one.
        grad_output: gradient of the output.
        stride, padding, dilation, groups: of the convolution.

    Returns:
        Tensor.
    """
    return function


conv1d_input, conv1d_weight = _make(1, True), _make(1, False)
conv2d_input, conv2d_weight = _make(2, True), _make(2, False)
conv3d_input, conv3d_weight = _make(3, True), _make(3, False)
