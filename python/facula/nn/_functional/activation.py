"""Activation functions."""

from __future__ import annotations

import facula
from facula.nn._functional import by_method, same_as

_nn = facula._C._nn


@same_as(facula.threshold, 3, 3)
def threshold(input, threshold, value, inplace=False):
    """Elements above `threshold` stay, others become `value`; returns a Tensor."""
    if inplace:
        return facula.threshold_(input, threshold, value)
    return facula.threshold(input, threshold, value)


_threshold = threshold


@same_as(facula.relu, 1, 1)
def relu(input, inplace=False):
    """max(x, 0), elementwise; returns a Tensor (`input` itself when `inplace`)."""
    return facula.relu_(input) if inplace else facula.relu(input)


@same_as(_nn.relu6, 1, 1)
def relu6(input, inplace=False):
    """min(max(x, 0), 6), elementwise; returns a Tensor."""
    return _nn.relu6_(input) if inplace else _nn.relu6(input)


@same_as(_nn.elu, 1, 2)
def elu(input, alpha=1.0, inplace=False):
    """x for x > 0, else alpha * (exp(x) - 1); returns a Tensor."""
    return _nn.elu_(input, alpha) if inplace else _nn.elu(input, alpha)


@same_as(facula.selu, 1, 1)
def selu(input, inplace=False):
    """Scaled ELU with the self-normalizing constants; returns a Tensor."""
    return facula.selu_(input) if inplace else facula.selu(input)


@same_as(facula.celu, 1, 2)
def celu(input, alpha=1.0, inplace=False):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)); returns a Tensor."""
    return facula.celu_(input, alpha) if inplace else facula.celu(input, alpha)


@same_as(_nn.leaky_relu, 1, 2)
def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x for x > 0, else negative_slope * x; returns a Tensor."""
    if inplace:
        return _nn.leaky_relu_(input, negative_slope)
    return _nn.leaky_relu(input, negative_slope)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """Leaky ReLU whose slope is drawn from U(lower, upper) in training; returns a Tensor."""
    if inplace:
        return facula.rrelu_(input, lower, upper, training)
    return facula.rrelu(input, lower, upper, training)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """Clamp to [min_val, max_val]; returns a Tensor. Raises ValueError when min_val is greater."""
    if min_val > max_val:
        raise ValueError(
            f"hardtanh(): min_val must not be above max_val; got {min_val} and {max_val}"
        )
    if inplace:
        return _nn.hardtanh_(input, min_val, max_val)
    return _nn.hardtanh(input, min_val, max_val)


@same_as(_nn.hardsigmoid, 1, 1)
def hardsigmoid(input, inplace=False):
    """relu6(x + 3) / 6, elementwise; returns a Tensor."""
    return _nn.hardsigmoid_(input) if inplace else _nn.hardsigmoid(input)


@same_as(_nn.hardswish, 1, 1)
def hardswish(input, inplace=False):
    """x * relu6(x + 3) / 6, elementwise; returns a Tensor."""
    return _nn.hardswish_(input) if inplace else _nn.hardswish(input)


@same_as(_nn.silu, 1, 1)
def silu(input, inplace=False):
    """x * sigmoid(x), elementwise; returns a Tensor."""
    return _nn.silu_(input) if inplace else _nn.silu(input)


@same_as(_nn.mish, 1, 1)
def mish(input, inplace=False):
    """x * tanh(softplus(x)), elementwise; returns a Tensor."""
    return _nn.mish_(input) if inplace else _nn.mish(input)


def glu(input, dim=-1):
    """First half along `dim` times the sigmoid of the second half; returns a Tensor.

    Raises:
        RuntimeError: a 0-dim input.
    """
    if input.dim() == 0:
        raise RuntimeError("glu(): input must have a dimension; got a 0-dim Tensor")
    return _nn.glu(input, dim)


@by_method
def sigmoid(input):
    """1 / (1 + exp(-x)), elementwise; returns a Tensor."""
    return input.sigmoid()


@by_method
def tanh(input):
    """Hyperbolic tangent, elementwise; returns a Tensor."""
    return input.tanh()


def softsign(input):
    """x / (1 + |x|), elementwise; returns a Tensor."""
    return input / (input.abs() + 1)


def tanhshrink(input):
    """x - tanh(x), elementwise; returns a Tensor."""
    return input - input.tanh()


def _get_softmax_dim(name, ndim, stacklevel):
    import warnings

    warnings.warn(
        f"{name}(): dim should be given; without it the number of dimensions decides",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(x) / sum(exp(x)) along `dim`; returns a Tensor.

    Args:
        input: Tensor of any shape.
        dim: dimension whose slices sum to 1.
        dtype: converts the input first when given.
    """
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """Softmax of -x along `dim`; returns a Tensor."""
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """Logarithm of softmax along `dim`, without overflow; returns a Tensor."""
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A draw from the Gumbel-softmax distribution along `dim`; returns a Tensor.

    Args:
        logits: Tensor (*, classes) of unnormalized log probabilities.
        tau: temperature.
        hard: give one-hot vectors that have the gradient of the soft draw.
        eps: has no effect.
    """
    if eps != 1e-10:
        import warnings

        warnings.warn("gumbel_softmax(): eps has no effect", stacklevel=2)
    noise = (
        -facula.empty_like(logits, memory_format=facula.legacy_contiguous_format)
        .exponential_()
        .log()
    )
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = facula.zeros_like(logits, memory_format=facula.legacy_contiguous_format).scatter_(
        dim, index, 1.0
    )
    return one_hot - soft.detach() + soft
