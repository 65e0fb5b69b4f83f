"""Linear layers."""

from __future__ import annotations

import math

import facula
from facula.nn import functional as F
from facula.nn import init
from facula.nn.modules.lazy import LazyModuleMixin
from facula.nn.modules.module import Module
from facula.nn.modules.utils import _keep
from facula.nn.parameter import Parameter, UninitializedParameter


class Identity(Module):
    """Returns its input; takes any arguments."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__()

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Return `input`."""
        return input


class Linear(Module):
    """y = x W^T + b.

    Args:
        in_features, out_features: sizes of the last dimension of input and output.
        bias: whether there is a bias.
        device, dtype: of the parameters.

    Shape: (*, in_features) -> (*, out_features); weight (out_features, in_features).

    Example:
        >>> facula.nn.Linear(20, 30)(facula.randn(128, 20)).size()
        facula.Size([128, 30])
    """

    __constants__ = ["in_features", "out_features"]

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device=None, dtype=None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        options = {"device": device, "dtype": dtype}
        self.weight = Parameter(facula.empty((out_features, in_features), **options))
        if bias:
            self.bias = Parameter(facula.empty(out_features, **options))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw weight and bias from U(-1/sqrt(in_features), 1/sqrt(in_features))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is None:
            return
        # With no inputs there is nothing to scale to, and the bias starts at zero.
        bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
        init.uniform_(self.bias, -bound, bound)

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Apply the layer to `input` of shape (*, in_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        """The sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear that dynamic quantization leaves alone."""


class Bilinear(Module):
    """y = x1^T A x2 + b.

    Args:
        in1_features, in2_features, out_features: sizes of the last dimensions.
        bias: whether there is a bias.
        device, dtype: of the parameters.
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"Bilinear: in1_features must be positive; got {in1_features}")
        _keep(self, in1_features=in1_features, in2_features=in2_features, out_features=out_features)
        options = {"device": device, "dtype": dtype}
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(facula.empty(shape, **options))
        if bias:
            self.bias = Parameter(facula.empty(out_features, **options))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw weight and bias from U(-1/sqrt(in1_features), 1/sqrt(in1_features))."""
        bound = 1 / math.sqrt(self.in1_features)
        for parameter in self.parameters(recurse=False):
            init.uniform_(parameter, -bound, bound)

    def forward(self, input1: facula.Tensor, input2: facula.Tensor) -> facula.Tensor:
        """Apply the layer to inputs of shapes (*, in1_features), (*, in2_features)."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self):
        """The sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear that finds `in_features` at its first call."""

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device=None, dtype=None) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        """Draw the parameters, once their shapes are known."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        """Give the parameters the shapes that `input` asks for."""
        if not self.has_uninitialized_params():
            return
        self.in_features = input.shape[-1]
        shapes = {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}
        with facula.no_grad():
            for name, parameter in self.named_parameters(recurse=False):
                parameter.materialize(shapes[name])
            self.reset_parameters()
