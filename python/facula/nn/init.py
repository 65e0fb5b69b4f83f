"""Ways to fill a parameter with its first values, in place and without gradients."""

from __future__ import annotations

import math

import facula

_LINEAR = (
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "sigmoid",
)


def _warn(message):
    import warnings

    warnings.warn(message, stacklevel=3)


def calculate_gain(nonlinearity, param=None):
    """The recommended gain of a nonlinearity.

    Args:
        nonlinearity: name of its function in `nn.functional`.
        param: negative slope of leaky_relu; 0.01 when None.

    Returns:
        A number.

    Raises:
        ValueError: an unknown name or a slope that is no number.
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + _slope(param) ** 2))
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity in gains:
        return gains[nonlinearity]
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _slope(param):
    if param is None:
        return 0.01
    if isinstance(param, bool) or not isinstance(param, (int, float)):
        raise ValueError(f"calculate_gain(): param must be a number; got {param!r}")
    return param


def _overridable(function):
    return facula._C.overridable(function, __name__)


@_overridable
def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Fill with draws from U(a, b); returns `tensor`."""
    with facula.no_grad():
        return tensor.uniform_(a, b, generator=generator)


@_overridable
def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Fill with draws from N(mean, std^2); returns `tensor`."""
    with facula.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Fill with draws from N(mean, std^2) cut to [a, b]; returns `tensor`."""
    if mean < a - 2 * std or mean > b + 2 * std:
        _warn(
            f"trunc_normal_(): mean {mean} lies over two standard deviations outside of "
            f"[{a}, {b}]; few draws fall there"
        )
    if tensor.is_meta:
        return tensor
    inside = _normal_share((a - mean) / std, (b - mean) / std)
    propose = _normal_proposals if inside > _SHARE_WORTH_NORMALS else _uniform_proposals
    with facula.no_grad():
        return _fill_accepted(tensor, lambda: propose(tensor, mean, std, a, b, generator))


# With less of the distribution between the bounds, uniform proposals are accepted more often; the
# number is PyTorch's, so that the random numbers are.
_SHARE_WORTH_NORMALS = 0.3


def _normal_share(low, high):
    """The share of standard normal numbers in (low, high)."""
    return (math.erfc(low / math.sqrt(2.0)) - math.erfc(high / math.sqrt(2.0))) / 2.0


def _fill_accepted(tensor, propose):
    """Sampling by rejection (Robert 1995): whole rounds, each serves what is still missing."""
    values, missing = propose()
    while missing.any():
        further, refused = propose()
        values = facula.where(missing, further, values)
        missing &= refused
    return tensor.copy_(values)


def _normal_proposals(tensor, mean, std, a, b, generator):
    """Normal numbers, refused where they are outside of the bounds."""
    values = facula.empty_like(tensor).normal_(mean, std, generator=generator)
    # The bounds as the tensor's dtype rounds them, so that comparing is exact.
    low, high = facula.tensor([a, b], dtype=tensor.dtype).tolist()
    return values, (values < low) | (values > high)


def _uniform_proposals(tensor, mean, std, a, b, generator):
    """Uniform numbers, refused with a chance of 1 - density / highest density in the window."""
    values = facula.empty_like(tensor).uniform_(a, b, generator=generator)
    mode = min(max(mean, a), b)
    log_highest = -0.5 * ((mode - mean) / std) ** 2
    log_density = ((values - mean) / std) ** 2 * -0.5 - log_highest
    chances = facula.empty_like(tensor).uniform_(generator=generator)
    return values, chances.log() > log_density


@_overridable
def constant_(tensor, val):
    """Fill with `val`; returns `tensor`."""
    with facula.no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """Fill with 1; returns `tensor`."""
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """Fill with 0; returns `tensor`."""
    with facula.no_grad():
        return tensor.zero_()


def eye_(tensor):
    """Fill a matrix with the identity; returns `tensor`. Raises ValueError unless 2-D."""
    if tensor.dim() != 2:
        raise ValueError(f"eye_(): tensor must have 2 dimensions; got {tensor.dim()}")
    with facula.no_grad():
        tensor.zero_().diagonal().fill_(1)
    return tensor


def dirac_(tensor, groups=1):
    """Fill a convolution weight (3 to 5 dimensions) so that it copies channels; returns it.

    Raises:
        ValueError: another number of dimensions, or output channels that `groups` does not divide.
    """
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError(f"dirac_(): tensor must have 3 to 5 dimensions; got {tensor.dim()}")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError(
            f"dirac_(): groups must divide the first size; got {groups} and {tensor.size(0)}"
        )
    per_group = sizes[0] // groups
    centre = [size // 2 for size in sizes[2:]]
    with facula.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, sizes[1])):
                tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError("fan in and fan out need a tensor of at least 2 dimensions")
    receptive = math.prod(tensor.shape[2:])
    return tensor.size(1) * receptive, tensor.size(0) * receptive


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    modes = ["fan_in", "fan_out"]
    if mode not in modes:
        raise ValueError(f"mode must be one of {modes}; got {mode!r}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


def _xavier_std(tensor, gain):
    return gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Fill from U(-a, a), a = gain * sqrt(6 / (fan_in + fan_out)); returns `tensor`."""
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Fill from N(0, std^2), std = gain * sqrt(2 / (fan_in + fan_out)); returns `tensor`."""
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


@_overridable
def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Fill from U(-b, b), b = gain * sqrt(3 / fan); returns `tensor`.

    Args:
        tensor: Tensor of 2 or more dimensions.
        a: negative slope when the nonlinearity is leaky_relu.
        mode: "fan_in" or "fan_out".
        nonlinearity: name for `calculate_gain`.
    """
    if 0 in tensor.shape:
        _warn("a tensor without elements has nothing to fill")
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Fill from N(0, std^2), std = gain / sqrt(fan); arguments as `kaiming_uniform_`."""
    if 0 in tensor.shape:
        _warn("a tensor without elements has nothing to fill")
        return tensor
    return normal_(tensor, 0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor, gain=1, generator=None):
    """Fill with a (semi-)orthogonal matrix times `gain`; returns `tensor`.

    Raises:
        ValueError: fewer than 2 dimensions.
    """
    if tensor.dim() < 2:
        raise ValueError(
            f"orthogonal_(): tensor must have at least 2 dimensions; got {tensor.dim()}"
        )
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    noise = tensor.new_empty((rows, cols)).normal_(generator=generator)
    wide = rows < cols
    q, r = facula.linalg.qr(noise.mT if wide else noise)
    # Signs of the diagonal of R make the distribution uniform.
    q = q * r.diagonal().sign()
    with facula.no_grad():
        tensor.copy_((q.mT if wide else q).reshape(tensor.shape)).mul_(gain)
    return tensor


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Fill a matrix from N(0, std^2) with a fraction `sparsity` of each column zero; returns it.

    Raises:
        ValueError: not 2-D.
    """
    if tensor.ndimension() != 2:
        raise ValueError(f"sparse_(): tensor must have 2 dimensions; got {tensor.dim()}")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with facula.no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            order = facula.randperm(rows)
            tensor[order[:zeros], col] = 0
    return tensor


def _deprecated(new):
    old_name = new.__name__[:-1]

    def old(*args, **kwargs):
        import warnings

        warnings.warn(
            f"nn.init.{old_name} is deprecated; nn.init.{new.__name__} is its name",
            FutureWarning,
            stacklevel=2,
        )
        return new(*args, **kwargs)

    old.__name__ = old_name
    old.__doc__ = f"Old name of `{new.__name__}`."
    return old


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
