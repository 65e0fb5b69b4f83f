"""Modules of activation functions."""
from __future__ import annotations

import facula
from facula.nn import functional as F
from facula.nn.modules.module import Module
from facula.nn.parameter import Parameter


def __getattr__(name):
    # Pickles and users also look for the attention module here.
    if name == "MultiheadAttention":
        from facula.nn.modules.attention import MultiheadAttention
        return MultiheadAttention
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _inplace(self):
    return "inplace=True" if self.inplace else ""


def _with_inplace(self, text):
    return text + (", inplace=True" if self.inplace else "")


class _InplaceActivation(Module):
    """An activation with `inplace` as its only setting."""

    __constants__ = ["inplace"]

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self):
        """The setting."""
        return _inplace(self)


class Threshold(Module):
    """Elements above `threshold` stay, others become `value`."""

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input):
        """Apply to `input`."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self):
        """The settings."""
        return _with_inplace(self, f"threshold={self.threshold}, value={self.value}")


class ReLU(_InplaceActivation):
    """max(x, 0), elementwise."""

    def forward(self, input):
        """Apply to `input`."""
        return F.relu(input, inplace=self.inplace)


class RReLU(Module):
    """Leaky ReLU whose slope is drawn from U(lower, upper) in training."""

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input):
        """Apply to `input`."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        """The settings."""
        return _with_inplace(self, f"lower={self.lower}, upper={self.upper}")


class Hardtanh(Module):
    """Clamp to [min_val, max_val]. Raises AssertionError unless max_val > min_val."""

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None):
        super().__init__()
        if min_value is not None:
            _warn_renamed("min_value", "min_val")
            min_val = min_value
        if max_value is not None:
            _warn_renamed("max_value", "max_val")
            max_val = max_value
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace
        if not self.max_val > self.min_val:
            raise AssertionError(f"Hardtanh: max_val must be above min_val; got {max_val} and "
                                 f"{min_val}")

    def forward(self, input):
        """Apply to `input`."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self):
        """The settings."""
        return _with_inplace(self, f"min_val={self.min_val}, max_val={self.max_val}")


def _warn_renamed(old, new):
    import warnings
    warnings.warn(f"keyword argument `{old}` is deprecated and rename to `{new}`", FutureWarning,
                  stacklevel=4)


class ReLU6(Hardtanh):
    """min(max(x, 0), 6), elementwise."""

    def __init__(self, inplace=False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self):
        """The setting."""
        return _inplace(self)


class Sigmoid(Module):
    """1 / (1 + exp(-x)), elementwise."""

    def forward(self, input):
        """Apply to `input`."""
        return facula.sigmoid(input)


class Hardsigmoid(Module):
    """relu6(x + 3) / 6, elementwise."""

    __constants__ = ["inplace"]

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input):
        """Apply to `input`."""
        return F.hardsigmoid(input, self.inplace)


class Tanh(Module):
    """Hyperbolic tangent, elementwise."""

    def forward(self, input):
        """Apply to `input`."""
        return facula.tanh(input)


class SiLU(_InplaceActivation):
    """x * sigmoid(x), elementwise."""

    def forward(self, input):
        """Apply to `input`."""
        return F.silu(input, inplace=self.inplace)


class Mish(_InplaceActivation):
    """x * tanh(softplus(x)), elementwise."""

    def forward(self, input):
        """Apply to `input`."""
        return F.mish(input, inplace=self.inplace)


class Hardswish(Module):
    """x * relu6(x + 3) / 6, elementwise."""

    __constants__ = ["inplace"]

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input):
        """Apply to `input`."""
        return F.hardswish(input, self.inplace)


class ELU(Module):
    """x for x > 0, else alpha * (exp(x) - 1)."""

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input):
        """Apply to `input`."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self):
        """The settings."""
        return _with_inplace(self, f"alpha={self.alpha}")


class CELU(Module):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input):
        """Apply to `input`."""
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self):
        """The settings."""
        return _with_inplace(self, f"alpha={self.alpha}")


class SELU(_InplaceActivation):
    """Scaled ELU with the self-normalizing constants."""

    def forward(self, input):
        """Apply to `input`."""
        return F.selu(input, self.inplace)


class GLU(Module):
    """First half along `dim` times the sigmoid of the second half."""

    __constants__ = ["dim"]

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        """Apply to `input`."""
        return F.glu(input, self.dim)

    def extra_repr(self):
        """The setting."""
        return f"dim={self.dim}"


class GELU(Module):
    """x * Phi(x), exact or (`approximate="tanh"`) by a tanh formula."""

    __constants__ = ["approximate"]

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):
        """Apply to `input`."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self):
        """The setting."""
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """x where |x| > lambd, else 0."""

    __constants__ = ["lambd"]

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        """Apply to `input`."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self):
        """The setting."""
        return f"{self.lambd}"


class LeakyReLU(Module):
    """x for x > 0, else negative_slope * x."""

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope=1e-2, inplace=False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input):
        """Apply to `input`."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self):
        """The settings."""
        return _with_inplace(self, f"negative_slope={self.negative_slope}")


class LogSigmoid(Module):
    """log(1 / (1 + exp(-x))), elementwise."""

    def forward(self, input):
        """Apply to `input`."""
        return F.logsigmoid(input)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold."""

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input):
        """Apply to `input`."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self):
        """The settings."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Softshrink(Module):
    """x moved towards 0 by lambd, 0 where |x| <= lambd."""

    __constants__ = ["lambd"]

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        """Apply to `input`."""
        return F.softshrink(input, self.lambd)

    def extra_repr(self):
        """The setting."""
        return str(self.lambd)


class PReLU(Module):
    """x for x > 0, else weight * x with a trained weight for all or for each channel.

    Args:
        num_parameters: 1, or the number of channels.
        init: first value of the weight.
        device, dtype: of the weight.
    """

    __constants__ = ["num_parameters"]

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        self.num_parameters = num_parameters
        super().__init__()
        self.init = init
        self.weight = Parameter(facula.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """Set the weight to its first value."""
        facula.nn.init.constant_(self.weight, self.init)

    def forward(self, input):
        """Apply to `input`."""
        return F.prelu(input, self.weight)

    def extra_repr(self):
        """The setting."""
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """x / (1 + |x|), elementwise."""

    def forward(self, input):
        """Apply to `input`."""
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x), elementwise."""

    def forward(self, input):
        """Apply to `input`."""
        return F.tanhshrink(input)


class _AlongDim(Module):
    """A function along one dimension."""

    __constants__ = ["dim"]

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)


class Softmin(_AlongDim):
    """Softmax of -x along `dim`."""

    def forward(self, input):
        """Apply to `input`."""
        return F.softmin(input, self.dim, _stacklevel=5)

    def extra_repr(self):
        """The setting."""
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x) / sum(exp(x)) along `dim`."""

    def forward(self, input):
        """Apply to `input`."""
        return F.softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self):
        """The setting."""
        return f"dim={self.dim}"


class LogSoftmax(_AlongDim):
    """Logarithm of softmax along `dim`."""

    def forward(self, input):
        """Apply to `input`."""
        return F.log_softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self):
        """The setting."""
        return f"dim={self.dim}"


class Softmax2d(Module):
    """Softmax over the channels of a (N, C, H, W) or (C, H, W) input."""

    def forward(self, input):
        """Apply to `input`. Raises ValueError for another number of dimensions."""
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: input must have 3 or 4 dimensions; got {input.dim()}")
        return F.softmax(input, -3, _stacklevel=5)
