"""Modules of activation functions."""

from __future__ import annotations

import facula
from facula import _missing
from facula.nn import functional as F
from facula.nn.modules.module import Module
from facula.nn.modules.utils import _keep
from facula.nn.parameter import Parameter


def __getattr__(name):
    # Pickles and users also look for the attention module here.
    if name == "MultiheadAttention":
        from facula.nn.modules.attention import MultiheadAttention

        return MultiheadAttention
    raise _missing.attribute(__name__, name)


class _Activation(Module):
    """Applies the function of nn.functional that `_op` names, with the settings of `_settings`."""

    _op = ""
    _settings = ()

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Apply to `input`."""
        return getattr(F, self._op)(input, **{name: getattr(self, name) for name in self._settings})

    def extra_repr(self):
        """The settings; `inplace` only where it is on."""
        shown = [
            f"{name}={getattr(self, name)}"
            for name in self._settings
            if name not in ("inplace", "training")
        ]
        return ", ".join(shown + ["inplace=True"] * getattr(self, "inplace", False))


class _InplaceActivation(_Activation):
    """An activation with `inplace` as its only setting."""

    __constants__ = ["inplace"]
    _settings = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class _SilentActivation(_InplaceActivation):
    """An activation that does not show `inplace`."""

    def extra_repr(self):
        """Nothing."""
        return ""


class Threshold(_Activation):
    """Elements above `threshold` stay, others become `value`."""

    __constants__ = ["threshold", "value", "inplace"]
    _op = "threshold"
    _settings = ("threshold", "value", "inplace")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        _keep(self, threshold=threshold, value=value, inplace=inplace)


class ReLU(_InplaceActivation):
    """max(x, 0), elementwise."""

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Apply to `input`."""
        return F.relu(input, inplace=self.inplace)


class RReLU(_Activation):
    """Leaky ReLU whose slope is drawn from U(lower, upper) in training."""

    __constants__ = ["lower", "upper", "inplace"]
    _op = "rrelu"
    _settings = ("lower", "upper", "training", "inplace")

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        _keep(self, lower=lower, upper=upper, inplace=inplace)


class Hardtanh(_Activation):
    """Clamp to [min_val, max_val]. Raises AssertionError unless max_val > min_val."""

    __constants__ = ["min_val", "max_val", "inplace"]
    _op = "hardtanh"
    _settings = ("min_val", "max_val", "inplace")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None:
            min_val = _renamed("min_value", "min_val", min_value)
        if max_value is not None:
            max_val = _renamed("max_value", "max_val", max_value)
        if not max_val > min_val:
            raise AssertionError(
                f"Hardtanh: max_val must be above min_val; got {max_val} and {min_val}"
            )
        _keep(self, min_val=min_val, max_val=max_val, inplace=inplace)


def _renamed(old, new, value):
    import warnings

    warnings.warn(f"Hardtanh: {old} is deprecated; its name is {new}", FutureWarning, stacklevel=4)
    return value


class ReLU6(Hardtanh):
    """min(max(x, 0), 6), elementwise."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self):
        """The setting."""
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """1 / (1 + exp(-x)), elementwise."""

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Apply to `input`."""
        return facula.sigmoid(input)


class Hardsigmoid(_SilentActivation):
    """relu6(x + 3) / 6, elementwise."""

    _op = "hardsigmoid"


class Tanh(Module):
    """Hyperbolic tangent, elementwise."""

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Apply to `input`."""
        return facula.tanh(input)


class SiLU(_InplaceActivation):
    """x * sigmoid(x), elementwise."""

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Apply to `input`."""
        return F.silu(input, inplace=self.inplace)


class Mish(_InplaceActivation):
    """x * tanh(softplus(x)), elementwise."""

    _op = "mish"


class Hardswish(_SilentActivation):
    """x * relu6(x + 3) / 6, elementwise."""

    _op = "hardswish"


class _AlphaActivation(_Activation):
    """An activation with the settings `alpha` and `inplace`."""

    __constants__ = ["alpha", "inplace"]
    _settings = ("alpha", "inplace")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        _keep(self, alpha=alpha, inplace=inplace)


class ELU(_AlphaActivation):
    """x for x > 0, else alpha * (exp(x) - 1)."""

    _op = "elu"


class CELU(_AlphaActivation):
    """x for x > 0, else alpha * (exp(x / alpha) - 1)."""

    _op = "celu"


class SELU(_InplaceActivation):
    """Scaled ELU with the self-normalizing constants."""

    _op = "selu"


class GLU(_Activation):
    """First half along `dim` times the sigmoid of the second half."""

    __constants__ = ["dim"]
    _op = "glu"
    _settings = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim


class GELU(Module):
    """x * Phi(x), exact or (`approximate="tanh"`) by a tanh formula."""

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Apply to `input`."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self):
        """The setting."""
        return f"approximate={self.approximate!r}"


class _Shrink(_Activation):
    """An activation with the setting `lambd`, shown without its name."""

    __constants__ = ["lambd"]
    _settings = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self):
        """The setting."""
        return str(self.lambd)


class Hardshrink(_Shrink):
    """x where |x| > lambd, else 0."""

    _op = "hardshrink"


class LeakyReLU(_Activation):
    """x for x > 0, else negative_slope * x."""

    __constants__ = ["inplace", "negative_slope"]
    _op = "leaky_relu"
    _settings = ("negative_slope", "inplace")

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        _keep(self, negative_slope=negative_slope, inplace=inplace)


class LogSigmoid(_Activation):
    """log(1 / (1 + exp(-x))), elementwise."""

    _op = "logsigmoid"


class Softplus(_Activation):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold."""

    __constants__ = ["beta", "threshold"]
    _op = "softplus"
    _settings = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        _keep(self, beta=beta, threshold=threshold)


class Softshrink(_Shrink):
    """x moved towards 0 by lambd, 0 where |x| <= lambd."""

    _op = "softshrink"


class PReLU(Module):
    """x for x > 0, else weight * x with a trained weight for all or for each channel.

    Args:
        num_parameters: 1, or the number of channels.
        init: first value of the weight.
        device, dtype: of the weight.
    """

    __constants__ = ["num_parameters"]

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None
    ) -> None:
        super().__init__()
        _keep(self, num_parameters=num_parameters, init=init)
        self.weight = Parameter(facula.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """Set the weight to its first value."""
        facula.nn.init.constant_(self.weight, self.init)

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Apply to `input`."""
        return F.prelu(input, self.weight)

    def extra_repr(self):
        """The setting."""
        return f"num_parameters={self.num_parameters}"


class Softsign(_Activation):
    """x / (1 + |x|), elementwise."""

    _op = "softsign"


class Tanhshrink(_Activation):
    """x - tanh(x), elementwise."""

    _op = "tanhshrink"


class _AlongDim(Module):
    """A function along one dimension."""

    __constants__ = ["dim"]
    _op = ""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state):
        super().__setstate__({"dim": None, **state})

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Apply to `input`."""
        return getattr(F, self._op)(input, self.dim, _stacklevel=5)

    def extra_repr(self):
        """The setting."""
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """Softmax of -x along `dim`."""

    _op = "softmin"


class _AlongInteger(_AlongDim):
    """A function along one dimension, which is checked at once."""

    def __init__(self, dim: int | None = None) -> None:
        if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int)):
            raise TypeError(f"{type(self).__name__}: dim must be an int or None; got {type(dim)}")
        super().__init__(dim)


class Softmax(_AlongInteger):
    """exp(x) / sum(exp(x)) along `dim`."""

    _op = "softmax"


class LogSoftmax(_AlongInteger):
    """Logarithm of softmax along `dim`."""

    _op = "log_softmax"


class Softmax2d(Module):
    """Softmax over the channels of a (N, C, H, W) or (C, H, W) input."""

    def forward(self, input: facula.Tensor) -> facula.Tensor:
        """Apply to `input`. Raises ValueError for another number of dimensions."""
        if 3 <= input.dim() <= 4:
            return F.softmax(input, -3)
        raise ValueError(f"Softmax2d: input must have 3 or 4 dimensions; got {input.dim()}")
