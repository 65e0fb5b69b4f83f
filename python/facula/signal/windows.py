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

import functools
import inspect
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


class _Points:
    """The points of a window: what all windows are asked for, checked."""

    def __init__(self, name, M, sym, dtype, layout, device, requires_grad):
        dtype = facula.get_default_dtype() if dtype is None else dtype
        if not hasattr(M, "__index__"):
            raise TypeError(f"{name}(): M must be an int; got {type(M).__name__}")
        if M < 0:
            raise ValueError(f"{name}(): the number of points M must not be negative; got {M}")
        if layout is not facula.strided:
            raise ValueError(f"{name}(): the layout must be facula.strided; got {layout}")
        if dtype not in (facula.float32, facula.float64):
            raise ValueError(f"{name}(): dtype must be float32 or float64; got {dtype}")
        self.M = M
        self.sym = sym
        # How many steps lead from the first point to the last one of the symmetric window.
        self.steps = M - 1 if sym else M
        self.options = dict(dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)

    def ramp(self, first, last):
        """M evenly spaced numbers of which the symmetric window's last one is `last`."""
        end = first + (last - first) * (self.M - 1) / self.steps
        return facula.linspace(first, end, self.M, **self.options)

    def distances(self, center=None):
        """How far each point is from the center, by default the middle of the window."""
        middle = self.steps / 2 if self.M > 1 else 0.0
        start = -(middle if center is None else center)
        return facula.linspace(start, start + self.M - 1, self.M, **self.options)


def _window(formula):
    """Give a formula over points the arguments that all windows share."""

    @functools.wraps(formula)
    def window(
        M,
        *,
        sym=True,
        dtype=None,
        layout=facula.strided,
        device=None,
        requires_grad=False,
        **parameters,
    ):
        points = _Points(formula.__name__, M, sym, dtype, layout, device, requires_grad)
        return formula(points, **parameters)

    count, *shared, _ = inspect.signature(window, follow_wrapped=False).parameters.values()
    _, *own = inspect.signature(formula).parameters.values()
    window.__signature__ = inspect.Signature([count, *own, *shared])
    return window


def _sum_of_cosines(points, a):
    """The sum of (-1) ** k a[k] cos(k x), for x over a whole period."""
    if points.M <= 1:
        return facula.ones((points.M,), **points.options)
    angles = points.ramp(0.0, 2 * math.pi)
    total = angles * 0 + a[0]  # the cosine of 0 x is 1
    for k, weight in enumerate(a[1:], start=1):
        cosines = (angles if k == 1 else angles * k).cos()
        total.add_(cosines, alpha=float((-1) ** k * weight))
    return total


@_window
def exponential(points, *, center=None, tau=1.0):
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
    if tau <= 0:
        raise ValueError(f"exponential(): tau must be positive; got {tau}")
    if points.sym and center is not None:
        raise ValueError(f"exponential(): a symmetric window takes no center; got {center}")
    return (-points.distances(center).abs() / tau).exp()


@_window
def cosine(points):
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
    M = points.M
    step = math.pi / (M if points.sym or M <= 1 else M + 1) if M else 0.0
    return facula.linspace(step / 2, step * (M - 0.5), M, **points.options).sin()


@_window
def gaussian(points, *, std=1.0):
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
    if std <= 0:
        raise ValueError(f"gaussian(): std must be positive; got {std}")
    return (-((points.distances() / (std * math.sqrt(2))) ** 2)).exp()


@_window
def kaiser(points, *, beta=12.0):
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
    if beta < 0:
        raise ValueError(f"kaiser(): beta must not be negative; got {beta}")
    if points.M <= 1:
        return facula.ones((points.M,), **points.options)
    # 1 - x ** 2 as (1 - x)(1 + x) of points counted from both ends is never below zero.
    forward = points.ramp(0.0, 2.0)
    height = (forward * (2.0 - forward)).clamp(min=0).sqrt()
    whole = facula.tensor(beta, dtype=forward.dtype, device=forward.device)
    return facula.i0(height * beta) / facula.i0(whole)


@_window
def hamming(points):
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
    return _sum_of_cosines(points, [0.54, 0.46])


@_window
def hann(points):
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
    return _sum_of_cosines(points, [0.5, 0.5])


@_window
def blackman(points):
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
    return _sum_of_cosines(points, [0.42, 0.5, 0.08])


@_window
def bartlett(points):
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
    if points.M <= 1:
        return facula.ones((points.M,), **points.options)
    return 1 - points.ramp(-1.0, 1.0).abs()


@_window
def general_cosine(points, *, a):
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
    if not isinstance(a, (list, tuple)):
        raise TypeError(f"general_cosine(): a must be a list or tuple; got {type(a).__name__}")
    if not a:
        raise ValueError("general_cosine(): a must have at least one coefficient; got none")
    return _sum_of_cosines(points, a)


@_window
def general_hamming(points, *, alpha=0.54):
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
    return _sum_of_cosines(points, [alpha, 1.0 - alpha])


@_window
def nuttall(points):
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
    return _sum_of_cosines(points, [0.3635819, 0.4891775, 0.1365995, 0.0106411])
