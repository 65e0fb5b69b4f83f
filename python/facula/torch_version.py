"""A version that compares as versions do, not as text does."""

from __future__ import annotations

import re

__all__ = ["TorchVersion"]

# Of a version as PEP 440 has it: release, pre-release, post-release, development, local part.
_FORM = re.compile(
    r"v?(\d+(?:\.\d+)*)[._-]?(?:(a|b|c|rc|alpha|beta|pre|preview)[._-]?(\d*))?"
    r"(?:[._-]?(?:post|rev|r)[._-]?(\d*))?(?:[._-]?dev[._-]?(\d*))?(?:\+([a-z0-9._-]+))?",
    re.IGNORECASE,
)
_PRE = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
_LAST = (1,)  # sorts behind each (0, ...)


def _key(text):
    """What a version is ordered by, or None for a text that is none."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        return None
    release, pre, pre_number, post, dev, local = found.groups()
    numbers = [int(n) for n in release.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    if pre:
        stage = (0, _PRE.get(pre.lower(), pre.lower()), int(pre_number or 0))
    else:
        # 1.0.dev1 is before 1.0a1, and 1.0a1 before 1.0.
        stage = (-1,) if dev is not None and post is None else _LAST
    parts = re.split(r"[._-]", local.lower()) if local else []
    return (
        numbers,
        stage,
        -1 if post is None else int(post or 0),
        _LAST if dev is None else (0, int(dev or 0)),
        [(1, int(p), "") if p.isdigit() else (0, 0, p) for p in parts],
    )


def _text(other):
    if isinstance(other, str):
        return other
    if isinstance(other, (tuple, list)):
        return ".".join(str(part) for part in other)
    return str(other)


def _comparison(name):
    plain = getattr(str, name)

    def compare(self, other):
        if other is None:
            return NotImplemented
        other = _text(other)
        mine, theirs = _key(str(self)), _key(other)
        if mine is None or theirs is None:
            return plain(str(self), other)
        return getattr(_Key(mine), name)(_Key(theirs))

    compare.__name__ = name
    return compare


class _Key(tuple):
    """A tuple, whose comparisons are looked up by name."""


class TorchVersion(str):
    """A version text that is ordered as a version: "1.10" is after "1.9".

    It compares with texts, tuples of numbers and versions of the package `packaging`.

    Example:
        >>> facula.torch_version.TorchVersion("2.10.0+cpu") > (2, 9)
        True
    """

    __lt__, __le__ = _comparison("__lt__"), _comparison("__le__")
    __gt__, __ge__ = _comparison("__gt__"), _comparison("__ge__")
    __eq__, __ne__ = _comparison("__eq__"), _comparison("__ne__")
    __hash__ = str.__hash__
