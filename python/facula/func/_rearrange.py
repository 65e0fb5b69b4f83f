"""Dimensions taken apart, put in another order and joined, by a pattern."""

from __future__ import annotations

import keyword
import math
import re
import warnings
from typing import NamedTuple

from facula import _C

__all__ = ["rearrange"]

_ELLIPSIS = "..."
_ONE = "1"
_TOKEN = re.compile(r"\.\.\.|[()]|[^\s().]+|\.")


class DimensionBindError(Exception):
    """The sizes of a tensor do not fit the names that a pattern gives them."""


class _Side(NamedTuple):
    """One side of a pattern: a tuple of names for each dimension; the ellipsis stands alone."""

    groups: list
    names: list  # in order, the ellipsis too, those of size 1 not


def rearrange(tensor, pattern, **axes_lengths):
    """Reorder, split and join dimensions as a pattern says: `"b (h n) -> b n h"`.

    Each side names the dimensions, with spaces between; names in parentheses make one dimension,
    the last of them changing fastest. `...` stands for any dimensions that have no name, `1` or
    `()` for one of size 1. On the left, where the right has no `1` either, it stands for a
    dimension of any size, which is summed over.

    Args:
        tensor (Tensor or sequence of Tensors): several are stacked along a new first dimension.
        pattern (str): both sides name the same dimensions, with `->` between.
        axes_lengths (int): sizes of names; in each pair of parentheses on the left one may be
            left to be found.

    Returns:
        Tensor: a view where the sizes allow it, else a copy.

    Raises:
        ValueError: the pattern cannot be read, or does not fit the number of dimensions.
        DimensionBindError: the sizes do not fit.
        TypeError: a length that is no int.

    Example:
        >>> facula.func.rearrange(facula.zeros(2, 6, 5), "a (b c) d -> d (a c) b", b=3).shape
        facula.Size([5, 4, 3])
    """
    left, right = _parse(pattern)
    _check_lengths(left, axes_lengths)
    if not isinstance(tensor, _C.Tensor):
        import facula

        tensor = facula.stack(tensor)
    if left == right and left.names in ([], [_ELLIPSIS]):
        return tensor
    summed = []
    if () in left.groups and () not in right.groups:
        left, summed = _with_names(left)
    sizes = _sizes(left, tensor.shape, axes_lengths)
    split = [size for name in left.names for size in sizes[name]]
    places, at = {}, 0
    for name in left.names:
        places[name] = range(at, at + len(sizes[name]))
        at += len(sizes[name])
    order = [place for name in right.names + summed for place in places[name]]
    parts = tensor.reshape(split).permute(order)
    if summed:
        parts = parts.sum([-1 - i for i in range(len(summed))])
    return parts.reshape(_result_shape(right, sizes))


def _with_names(left):
    """The side with names for its dimensions that have none, and these names."""
    made = [f"1.{i}" for i in range(left.groups.count(()))]
    fresh = iter(made)
    groups = [group or (next(fresh),) for group in left.groups]
    return _Side(groups, [name for group in groups for name in group]), made


def _parse(pattern):
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"rearrange(): expected a pattern with one '->'; got {pattern!r}")
    left, right = map(_parse_side, sides)
    if re.search(r"\([^)]*\.\.\.", pattern.split("->")[0]):
        raise ValueError(f"rearrange(): '...' may not be in parentheses on the left: {pattern!r}")
    alone = set(left.names) ^ set(right.names)
    if alone:
        raise ValueError(f"rearrange(): {sorted(alone)} must be on both sides; got {pattern!r}")
    return left, right


def _parse_side(text):
    groups, names, open_group = [], [], None
    for token in _TOKEN.findall(text):
        if token == "(":
            if open_group is not None:
                raise ValueError(f"rearrange(): parentheses may not nest; got {text!r}")
            open_group = []
        elif token == ")":
            if open_group is None:
                raise ValueError(f"rearrange(): a ')' has no '('; got {text!r}")
            groups.append(tuple(open_group))
            open_group = None
        else:
            _check_name(token, names)
            if token != _ONE:
                names.append(token)
            member = () if token == _ONE else (token,)
            if open_group is None:
                groups.append(member)
            else:
                open_group.extend(member)
    if open_group is not None:
        raise ValueError(f"rearrange(): a '(' has no ')'; got {text!r}")
    return _Side(groups, names)


def _check_name(token, names):
    if token in names:
        raise ValueError(f"rearrange(): {token!r} stands twice on one side of the pattern")
    if token in (_ELLIPSIS, _ONE):
        return
    if token.isdecimal():
        raise ValueError(f"rearrange(): a dimension without a name has size 1; got {token}")
    if not token.isidentifier() or token[0] == "_" or token[-1] == "_":
        raise ValueError(
            f"rearrange(): a name must be an identifier without '_' at its ends; got {token!r}"
        )
    if keyword.iskeyword(token):
        warnings.warn(
            f"rearrange(): {token!r} is a keyword of Python and cannot be given a length",
            RuntimeWarning,
            stacklevel=5,
        )


def _check_lengths(left, lengths):
    for name, length in lengths.items():
        if not isinstance(length, int):
            raise TypeError(f"rearrange(): expected an int for {name}; got {type(length).__name__}")
    unknown = set(lengths) - set(left.names)
    if unknown:
        raise ValueError(f"rearrange(): the pattern has no {sorted(unknown)}")


def _check_dimensions(left, count):
    has_rest = (_ELLIPSIS,) in left.groups
    rest = count - len(left.groups) + has_rest
    if rest < 0 or (rest and not has_rest):
        raise ValueError(
            f"rearrange(): the pattern has {len(left.groups)} dimensions; the tensor {count}"
        )


def _sizes(left, shape, lengths):
    """The sizes of every name, a tuple each: one number but for the ellipsis."""
    _check_dimensions(left, len(shape))
    rest = len(shape) - len(left.groups) + 1
    sizes, at = {}, 0
    for group in left.groups:
        if group == (_ELLIPSIS,):
            sizes[_ELLIPSIS] = tuple(shape[at : at + rest])
            at += rest
            continue
        for name, size in zip(group, _split(group, shape[at], lengths), strict=True):
            sizes[name] = (size,)
        at += 1
    return sizes


def _split(group, size, lengths):
    """The sizes of the names that make up one dimension."""
    known = math.prod(lengths.get(name, 1) for name in group)
    unknown = [name for name in group if name not in lengths]
    if len(unknown) > 1:
        raise DimensionBindError(f"rearrange(): the sizes of {unknown} must be given, but for one")
    whole = size % known == 0 if unknown and known else size == known
    if not whole:
        raise DimensionBindError(
            f"rearrange(): a dimension of size {size} cannot be {_described(group, lengths)}"
        )
    return [lengths.get(name, size // known if known else 0) for name in group]


def _described(group, lengths):
    return " * ".join(str(lengths.get(name, name)) for name in group) or _ONE


def _result_shape(right, sizes):
    shape = []
    for group in right.groups:
        if group == (_ELLIPSIS,):
            shape.extend(sizes[_ELLIPSIS])
        else:
            shape.append(math.prod(size for name in group for size in sizes[name]))
    return shape
