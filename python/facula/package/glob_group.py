"""Patterns of module names and paths: `*` within a segment, `**` any number of segments."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Union

__all__ = ["GlobGroup"]

GlobPattern = Union[str, Iterable[str]]


def _segment(text, separator):
    if text == "**":
        return rf"(?:{separator}(?:[^{separator}]+))*"
    if "**" in text:
        raise ValueError("** can only appear as an entire path segment")
    return separator + f"[^{separator}]*".join(map(re.escape, text.split("*")))


def _compiled(pattern, separator):
    escaped = re.escape(separator)
    return re.compile("".join(_segment(part, escaped) for part in pattern.split(separator)))


class GlobGroup:
    """Names that patterns match and others do not.

    Args:
        include (str or iterable of str): patterns, of which one must match.
        exclude (str or iterable of str): patterns, of which none may match.
        separator (str): what stands between segments.

    Raises:
        ValueError: a pattern has `**` beside other characters of a segment.

    Example:
        >>> group = facula.package.GlobGroup("torch.**", exclude="torch.nn.*")
        >>> group.matches("torch.optim.sgd"), group.matches("torch.nn.init")
        (True, False)
    """

    def __init__(self, include: GlobPattern, *, exclude: GlobPattern = (), separator: str = "."):
        self._text = f"GlobGroup(include={include}, exclude={exclude})"
        self.include = self._glob_list(include, separator)
        self.exclude = self._glob_list(exclude, separator)
        self.separator = separator

    def __str__(self):
        return self._text

    __repr__ = __str__

    def matches(self, candidate: str) -> bool:
        """Whether a name is in the group."""
        name = self.separator + candidate
        return any(p.fullmatch(name) for p in self.include) and all(
            not p.fullmatch(name) for p in self.exclude
        )

    @staticmethod
    def _glob_list(elems, separator="."):
        elems = [elems] if isinstance(elems, str) else elems
        return [_compiled(pattern, separator) for pattern in elems]
