"""assert_close: whether two results are the same within a tolerance, and where they are not."""

from __future__ import annotations

import cmath
from collections.abc import Mapping, Sequence
from numbers import Number

import facula

# dtype -> relative and absolute tolerance; (0, 0) for others.
_TOLERANCES = {
    facula.float16: (1e-3, 1e-5),
    facula.bfloat16: (1.6e-2, 1e-5),
    facula.float32: (1.3e-6, 1e-5),
    facula.float64: (1e-7, 1e-7),
    facula.complex64: (1.3e-6, 1e-5),
    facula.complex128: (1e-7, 1e-7),
}
_DTYPE_OF = {float: facula.float64, complex: facula.complex128}


class _Options:
    """How two values are compared."""

    def __init__(self, rtol, atol, **flags):
        if (rtol is None) != (atol is None):
            raise ValueError(
                "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
                f"{'rtol' if rtol is None else 'atol'}."
            )
        self.rtol, self.atol = rtol, atol
        self.__dict__.update(flags)

    def tolerances(self, *dtypes):
        """Relative and absolute tolerance for values of these dtypes."""
        if self.rtol is not None:
            return self.rtol, self.atol
        known = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
        return max(r for r, _ in known), max(a for _, a in known)


class _Mismatch(Exception):
    """A difference that was found, and where."""

    def __init__(self, text, path):
        self.text, self.path = text, path


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected|.

    Args:
        actual, expected: Tensors, arrays, numbers, None, and sequences and mappings of these.
        allow_subclasses (bool): types need only be related.
        rtol, atol (float): both or none; they follow the dtype unless given.
        equal_nan (bool): whether two NaN are equal.
        check_device, check_dtype, check_layout, check_stride (bool): what else must be equal.
        msg (str or function): what the error says, or what makes that of the usual text.

    Raises:
        AssertionError: they differ.
        ValueError: one of `rtol` and `atol` alone.
        TypeError: values that cannot be compared.

    Example:
        >>> assert_close(facula.tensor([1.0, 2.0]), facula.tensor([1.0, 2.0 + 1e-6]))
        >>> assert_close([1.0], [1.5])
        Traceback (most recent call last):
            ...
        AssertionError: Scalars are not close!
        ...
    """
    options = _Options(
        rtol,
        atol,
        allow_subclasses=allow_subclasses,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    try:
        _compare(actual, expected, options, ())
    except _Mismatch as found:
        text = found.text
        if found.path:
            place = "".join(f"[{step!r}]" for step in found.path)
            text += f"\n\nThe failure occurred for item {place}"
        if msg is not None:
            text = msg(text) if callable(msg) else msg
    else:
        return
    raise AssertionError(text)


def _compare(actual, expected, options, path):
    if _both(actual, expected, Sequence) and not isinstance(actual, str):
        return _compare_sequences(actual, expected, options, path)
    if _both(actual, expected, Mapping):
        return _compare_mappings(actual, expected, options, path)
    if actual is None or expected is None:
        if actual is not expected:
            raise _Mismatch(f"None mismatch: {actual} is not {expected}", path)
        return None
    if _both(actual, expected, bool):
        if actual is not expected:
            raise _Mismatch(f"Booleans mismatch: {actual} is not {expected}", path)
        return None
    if _both(actual, expected, Number):
        return _compare_numbers(actual, expected, options, path)
    if not _are_tensor_like(actual, expected, options):
        raise TypeError(
            "No comparison pair was able to handle inputs of type "
            f"{type(actual)} and {type(expected)}."
        )
    return _compare_tensors(facula.as_tensor(actual), facula.as_tensor(expected), options, path)


def _both(actual, expected, kind):
    return isinstance(actual, kind) and isinstance(expected, kind)


def _are_tensor_like(actual, expected, options):
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if not related or (not options.allow_subclasses and type(actual) is not type(expected)):
        return False
    return isinstance(actual, facula.Tensor) or hasattr(actual, "__array__")


def _compare_sequences(actual, expected, options, path):
    if len(actual) != len(expected):
        raise _Mismatch(
            f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path
        )
    for i in range(len(actual)):
        _compare(actual[i], expected[i], options, (*path, i))


def _compare_mappings(actual, expected, options, path):
    missing, extra = set(expected) - set(actual), set(actual) - set(expected)
    if missing or extra:
        raise _Mismatch(
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(missing)}\n"
            f"Additional keys in the actual mapping: {sorted(extra)}",
            path,
        )
    for key in expected:
        _compare(actual[key], expected[key], options, (*path, key))


def _compare_numbers(actual, expected, options, path):
    if options.check_dtype and type(actual) is not type(expected):
        raise _Mismatch(f"The (d)types do not match: {type(actual)} != {type(expected)}.", path)
    kinds = [_DTYPE_OF.get(type(value), facula.int64) for value in (actual, expected)]
    _compare_scalars(actual, expected, *options.tolerances(*kinds), options, path)


def _compare_scalars(actual, expected, rtol, atol, options, path):
    if actual == expected or (options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    difference = abs(actual - expected)
    if cmath.isfinite(difference) and difference <= atol + rtol * abs(expected):
        return
    exact = rtol == atol == 0
    share = float("inf") if expected == 0 else difference / abs(expected)
    raise _Mismatch(
        f"Scalars are not {'equal' if exact else 'close'}!\n\n"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{_allowed(atol, exact)}\n"
        f"Relative difference: {share}{_allowed(rtol, exact)}",
        path,
    )


def _allowed(tolerance, exact):
    return "" if exact else f" (up to {tolerance} allowed)"


def _compare_tensors(actual, expected, options, path):
    _compare_attributes(actual, expected, options, path)
    rtol, atol = options.tolerances(actual.dtype, expected.dtype)
    actual, expected = actual.detach(), expected.detach()
    if actual.layout != facula.strided:
        actual, expected = actual.to_dense(), expected.to_dense()
    expected = expected.to(actual.device)
    if actual.dtype != expected.dtype:
        dtype = facula.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(dtype), expected.to(dtype)
    if actual.dtype == facula.bool or not (actual.is_floating_point() or actual.is_complex()):
        actual, expected = actual.to(facula.int64), expected.to(facula.int64)
    matches = facula.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if matches.all():
        return
    if actual.dim() == 0:
        _compare_scalars(actual.item(), expected.item(), rtol, atol, options, path)
    _raise_differences(actual, expected, matches, rtol, atol, path)


def _raise_differences(actual, expected, matches, rtol, atol, path):
    exact = rtol == atol == 0
    count, number = matches.numel(), int((~matches).sum().item())
    difference = (actual - expected).abs()
    share = difference / expected.abs()
    lines = [
        f"Tensor-likes are not {'equal' if exact else 'close'}!",
        "",
        f"Mismatched elements: {number} / {count} ({number / count:.1%})",
    ]
    for title, values, tolerance in (
        ("absolute", difference, atol),
        ("relative", share, rtol),
    ):
        values = values.clone()
        values[matches] = 0
        index = int(values.flatten().argmax().item())
        place = tuple(int(i) for i in facula.unravel_index(facula.tensor(index), values.shape))
        lines.append(
            f"Greatest {title} difference: {values.flatten()[index].item()} at index {place}"
            f"{_allowed(tolerance, exact)}"
        )
    raise _Mismatch("\n".join(lines), path)


def _compare_attributes(actual, expected, options, path):
    checks = [
        (True, "shape", lambda t: t.shape),
        (options.check_layout, "layout", lambda t: t.layout),
        (options.check_device, "device", lambda t: t.device),
        (options.check_dtype, "dtype", lambda t: t.dtype),
        (options.check_stride, "stride()", lambda t: t.stride()),
    ]
    for wanted, name, of in checks:
        if wanted and of(actual) != of(expected):
            raise _Mismatch(
                f"The values for attribute '{name}' do not match: {of(actual)} != {of(expected)}.",
                path,
            )
