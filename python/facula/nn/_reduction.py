"""The `reduction` argument of losses."""

from __future__ import annotations

_PLAIN = {"none": 0, "mean": 1, "sum": 2}
_ENUM = {**_PLAIN, "elementwise_mean": 1}


def check(reduction):
    """Raise ValueError unless `reduction` is "none", "mean" or "sum"."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"reduction must be 'none', 'mean' or 'sum'; got {reduction!r}")


def get_enum(reduction):
    """The number by which operators know a reduction. Raises ValueError for an unknown name."""
    if reduction not in _ENUM:
        raise ValueError(f"reduction must be 'none', 'mean' or 'sum'; got {reduction!r}")
    if reduction == "elementwise_mean":
        import warnings

        warnings.warn("reduction 'elementwise_mean' is deprecated; it is 'mean'", stacklevel=3)
    return _ENUM[reduction]


def legacy_get_string(size_average, reduce, emit_warning=True):
    """The reduction that the old arguments `size_average` and `reduce` mean; returns a str."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    name = ("mean" if size_average else "sum") if reduce else "none"
    if emit_warning:
        import warnings

        warnings.warn(
            f"size_average and reduce are deprecated; reduction='{name}' says the same",
            stacklevel=3,
        )
    return name


def legacy_get_enum(size_average, reduce, emit_warning=True):
    """As `legacy_get_string`, but the number."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def resolve(reduction, size_average, reduce):
    """The number of a reduction, where the old arguments win when they are given."""
    if size_average is None and reduce is None and reduction in _PLAIN:
        return _PLAIN[reduction]
    if size_average is not None or reduce is not None:
        return legacy_get_enum(size_average, reduce)
    return get_enum(reduction)
