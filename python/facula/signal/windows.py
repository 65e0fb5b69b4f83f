"""Window functions by their number of points.

`sym=True` gives a window for designing filters, symmetric about its middle; `sym=False` one for
spectral analysis, which is periodic: the first M points of the symmetric window of M + 1.

All of them are computed in the dtype asked for, float32 or float64 (by default the default dtype),
and share these arguments: M (int), the number of points; `sym`; `dtype`; `layout`, which must be
`facula.strided`; `device`; `requires_grad`. They raise ValueError for a negative M, another dtype
or another layout. Formulas are those of Harris, "On the use of windows for harmonic analysis with
the discrete Fourier transform", 1978, but for `kaiser` and `nuttall`.
"""

from __future__ import annotations

import math

import facula

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


class _Window:
    """The arguments that all windows share, checked; makes tensors of M points."""

    def __init__(self, name, M, sym, dtype, layout, device, requires_grad):
        dtype = facula.get_default_dtype() if dtype is None else dtype
        if M < 0:
            raise ValueError(f"{name}(): the number of points M must not be negative; got {M}")
        if layout is not facula.strided:
            raise ValueError(f"{name}(): the layout must be facula.strided; got {layout}")
        if dtype not in (facula.float32, facula.float64):
            raise ValueError(f"{name}(): dtype must be float32 or float64; got {dtype}")
        self.M = M
        # How many steps lead from the first point to the last one of the symmetric window.
        self.steps = M - 1 if sym else M
        self.options = dict(dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)

    def is_trivial(self):
        """Whether the window has at most one point, whose value is 1."""
        return self.M <= 1

    def trivial(self):
        return facula.ones((self.M,), **self.options)

    def ramp(self, first, last):
        """M evenly spaced numbers of which the symmetric window's last one is `last`."""
        end = first + (last - first) * (self.M - 1) / self.steps
        return facula.linspace(first, end, self.M, **self.options)


def exponential(
    M,
    *,
    center=None,
    tau=1.0,
    sym=True,
    dtype=None,
    layout=facula.strided,
    device=None,
    requires_grad=False,
):
    """The exponential (Poisson) window: exp(-|n - center| / tau).

    Args:
        M (int): number of points.
        center (float, optional): where the window is 1, for `sym=False`; else its middle.
        tau (float): the decay; positive.
        sym, dtype, layout, device, requires_grad: as for all windows of this module.

    Returns:
        Tensor of shape (M,)

    Raises:
        ValueError: for `tau` that is not positive, or a center of a symmetric window.

    Example:
        >>> facula.signal.windows.exponential(3)
        tensor([0.3679, 1.0000, 0.3679])
    """
    window = _Window("exponential", M, sym, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError(f"exponential(): tau must be positive; got {tau}")
    if sym and center is not None:
        raise ValueError(f"exponential(): a symmetric window takes no center; got {center}")
    if M == 0:
        return window.trivial()
    middle = window.steps / 2 if M > 1 else 0.0
    start = -(middle if center is None else center)
    return (-facula.linspace(start, start + M - 1, M, **window.options).abs() / tau).exp()


def cosine(
    M,
    *,
    sym=True,
    dtype=None,
    layout=facula.strided,
    device=None,
    requires_grad=False,
):
    """The cosine window: half a period of a sine.

    Args:
        M (int): number of points.
        sym, dtype, layout, device, requires_grad: as for all windows of this module.

    Returns:
        Tensor of shape (M,)

    Raises:
        ValueError: for arguments that no window takes.

    Example:
        >>> facula.signal.windows.cosine(3)
        tensor([0.5000, 1.0000, 0.5000])
    """
    window = _Window("cosine", M, sym, dtype, layout, device, requires_grad)
    if M == 0:
        return window.trivial()
    step = math.pi / (M if sym or M == 1 else M + 1)
    return facula.linspace(step / 2, step * (M - 0.5), M, **window.options).sin()


def gaussian(
    M,
    *,
    std=1.0,
    sym=True,
    dtype=None,
    layout=facula.strided,
    device=None,
    requires_grad=False,
):
    """The Gaussian window: exp(-(n / std) ** 2 / 2), with n counted from the middle.

    Args:
        M (int): number of points.
        std (float): the standard deviation, in points; positive.
        sym, dtype, layout, device, requires_grad: as for all windows of this module.

    Returns:
        Tensor of shape (M,)

    Raises:
        ValueError: for `std` that is not positive.

    Example:
        >>> facula.signal.windows.gaussian(3)
        tensor([0.6065, 1.0000, 0.6065])
    """
    window = _Window("gaussian", M, sym, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError(f"gaussian(): std must be positive; got {std}")
    if M == 0:
        return window.trivial()
    start = -(window.steps / 2 if M > 1 else 0.0)
    points = facula.linspace(start, start + M - 1, M, **window.options)
    return (-((points / (std * math.sqrt(2))) ** 2)).exp()


def kaiser(
    M,
    *,
    beta=12.0,
    sym=True,
    dtype=None,
    layout=facula.strided,
    device=None,
    requires_grad=False,
):
    """The Kaiser window: I0(beta sqrt(1 - x ** 2)) / I0(beta) for x from -1 to 1.

    Kaiser, "Nonrecursive digital filter design using the I0-sinh window function", 1974.

    Args:
        M (int): number of points.
        beta (float): the shape; not negative. 0 gives a rectangle.
        sym, dtype, layout, device, requires_grad: as for all windows of this module.

    Returns:
        Tensor of shape (M,)

    Raises:
        ValueError: for a negative `beta`.

    Example:
        >>> facula.signal.windows.kaiser(3, beta=2.0)
        tensor([0.4387, 1.0000, 0.4387])
    """
    window = _Window("kaiser", M, sym, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError(f"kaiser(): beta must not be negative; got {beta}")
    if window.is_trivial():
        return window.trivial()
    # 1 - x ** 2 as (1 - x)(1 + x) of points counted from both ends is never below zero.
    forward = window.ramp(0.0, 2.0)
    height = (forward * (2.0 - forward)).clamp(min=0).sqrt()
    whole = facula.tensor(beta, dtype=window.options["dtype"], device=device)
    return facula.i0(height * beta) / facula.i0(whole)


def hamming(
    M,
    *,
    sym=True,
    dtype=None,
    layout=facula.strided,
    device=None,
    requires_grad=False,
):
    """The Hamming window: `general_hamming` with alpha 0.54.

    Args:
        M (int): number of points.
        sym, dtype, layout, device, requires_grad: as for all windows of this module.

    Returns:
        Tensor of shape (M,)

    Raises:
        ValueError: for arguments that no window takes.

    Example:
        >>> facula.signal.windows.hamming(3)
        tensor([0.0800, 1.0000, 0.0800])
    """
    options = dict(sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    return general_hamming(M, **options)


def hann(
    M,
    *,
    sym=True,
    dtype=None,
    layout=facula.strided,
    device=None,
    requires_grad=False,
):
    """The Hann window: `general_hamming` with alpha 0.5.

    Args:
        M (int): number of points.
        sym, dtype, layout, device, requires_grad: as for all windows of this module.

    Returns:
        Tensor of shape (M,)

    Raises:
        ValueError: for arguments that no window takes.

    Example:
        >>> facula.signal.windows.hann(4, sym=False)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    options = dict(sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    return general_hamming(M, alpha=0.5, **options)


def blackman(
    M,
    *,
    sym=True,
    dtype=None,
    layout=facula.strided,
    device=None,
    requires_grad=False,
):
    """The Blackman window: `general_cosine` of 0.42, 0.5 and 0.08.

    Args:
        M (int): number of points.
        sym, dtype, layout, device, requires_grad: as for all windows of this module.

    Returns:
        Tensor of shape (M,)

    Raises:
        ValueError: for arguments that no window takes.

    Example:
        >>> facula.signal.windows.blackman(4, sym=False)[1:]
        tensor([0.3400, 1.0000, 0.3400])
    """
    options = dict(sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    return general_cosine(M, a=[0.42, 0.5, 0.08], **options)


def bartlett(
    M,
    *,
    sym=True,
    dtype=None,
    layout=facula.strided,
    device=None,
    requires_grad=False,
):
    """The Bartlett window: a triangle whose ends are zero.

    Args:
        M (int): number of points.
        sym, dtype, layout, device, requires_grad: as for all windows of this module.

    Returns:
        Tensor of shape (M,)

    Raises:
        ValueError: for arguments that no window takes.

    Example:
        >>> facula.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    window = _Window("bartlett", M, sym, dtype, layout, device, requires_grad)
    if window.is_trivial():
        return window.trivial()
    return 1 - window.ramp(-1.0, 1.0).abs()


def general_cosine(
    M,
    *,
    a,
    sym=True,
    dtype=None,
    layout=facula.strided,
    device=None,
    requires_grad=False,
):
    """The sum of (-1) ** k a[k] cos(k x), for x over a whole period.

    Args:
        M (int): number of points.
        a (list or tuple of float): the coefficients, at least one.
        sym, dtype, layout, device, requires_grad: as for all windows of this module.

    Returns:
        Tensor of shape (M,)

    Raises:
        TypeError: for `a` that is no list or tuple.
        ValueError: for `a` without coefficients.

    Example:
        >>> facula.signal.windows.general_cosine(3, a=[0.46, 0.23, 0.31])
        tensor([0.5400, 1.0000, 0.5400])
    """
    window = _Window("general_cosine", M, sym, dtype, layout, device, requires_grad)
    if window.is_trivial():
        return window.trivial()
    if not isinstance(a, (list, tuple)):
        raise TypeError(f"general_cosine(): a must be a list or tuple; got {type(a).__name__}")
    if not a:
        raise ValueError("general_cosine(): a must have at least one coefficient; got none")
    angles = window.ramp(0.0, 2 * math.pi)
    terms = [(-1) ** k * weight * (angles * k).cos() for k, weight in enumerate(a)]
    return facula.stack(terms).sum(0)


def general_hamming(
    M,
    *,
    alpha=0.54,
    sym=True,
    dtype=None,
    layout=facula.strided,
    device=None,
    requires_grad=False,
):
    """A raised cosine: alpha - (1 - alpha) cos(x), for x over a whole period.

    Args:
        M (int): number of points.
        alpha (float): the part that is constant.
        sym, dtype, layout, device, requires_grad: as for all windows of this module.

    Returns:
        Tensor of shape (M,)

    Raises:
        ValueError: for arguments that no window takes.

    Example:
        >>> facula.signal.windows.general_hamming(3, alpha=0.75)
        tensor([0.5000, 1.0000, 0.5000])
    """
    options = dict(sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    return general_cosine(M, a=[alpha, 1.0 - alpha], **options)


def nuttall(
    M,
    *,
    sym=True,
    dtype=None,
    layout=facula.strided,
    device=None,
    requires_grad=False,
):
    """The Nuttall window with least sidelobes: `general_cosine` of four coefficients.

    Nuttall, "Some windows with very good sidelobe behavior", 1981; coefficients of Heinzel, Rüdiger
    and Schilling, "Spectrum and spectral density estimation by the DFT", 2002.

    Args:
        M (int): number of points.
        sym, dtype, layout, device, requires_grad: as for all windows of this module.

    Returns:
        Tensor of shape (M,)

    Raises:
        ValueError: for arguments that no window takes.

    Example:
        >>> facula.signal.windows.nuttall(4, sym=False)[1:]
        tensor([0.2270, 1.0000, 0.2270])
    """
    options = dict(sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], **options)
