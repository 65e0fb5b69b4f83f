"""Counts of instructions by function, as Valgrind's Callgrind makes them.

The classes hold, add up and print counts that were taken; `Timer.collect_callgrind` says why it
takes none.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from typing import NamedTuple

from facula.utils.benchmark.measurement import TaskSpec

__all__ = ["CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts"]

_ROWS = 18
# How often Python probes its dicts depends on addresses, so that it differs from run to run.
_NOISE = ("dictobject.c:lookdict_unicode",)


class FunctionCount(NamedTuple):
    """Instructions of one function."""

    count: int
    function: str


@dataclasses.dataclass(repr=False, eq=False, frozen=True)
class FunctionCounts:
    """Instructions of several functions, the most first; they add and subtract by name.

    Args:
        _data (tuple of FunctionCount): the counts.
        inclusive (bool): whether a function's count has those of functions that it calls.
        truncate_rows (bool): whether long lists are printed in part.

    Example:
        >>> a = FunctionCounts((FunctionCount(5, "f"), FunctionCount(2, "g")), True)
        >>> (a + a).sum()
        14
    """

    _data: tuple[FunctionCount, ...]
    inclusive: bool
    truncate_rows: bool = True
    _linewidth: int | None = None

    def __iter__(self):
        return iter(self._data)

    def __len__(self):
        return len(self._data)

    def __getitem__(self, item):
        data = self._data[item]
        if isinstance(item, slice):
            return FunctionCounts(data, self.inclusive, truncate_rows=False)
        return data

    def __repr__(self):
        width = max((len(str(c)) + (c < 0) for c, _ in self), default=0)
        most = (self._linewidth or 80) - width - 4
        rows = [f"  {c:>{width}}  {_shortened(name, most)}" for c, name in self]
        if self.truncate_rows and len(rows) > _ROWS:
            rows = [*rows[: _ROWS // 2], f"{'...':>{width + 2}}", *rows[-(_ROWS // 2) :]]
        if not self.inclusive:
            rows += ["", f"Total: {self.sum()}"]
        kind = type(self)
        head = f"<{kind.__module__}.{kind.__name__} object at {id(self):#x}>"
        return "\n".join([head, *rows])

    def __add__(self, other):
        return self._merged(other, 1)

    def __sub__(self, other):
        return self._merged(other, -1)

    def __mul__(self, other):
        counts = {name: int(c * other) for c, name in self}
        return self._from_dict(counts, self.inclusive)

    def transform(self, map_fn):
        """Counts by `map_fn(function)`; those that then have one name are added up."""
        counts = {}
        for c, name in self:
            name = map_fn(name)
            counts[name] = counts.get(name, 0) + c
        return self._from_dict(counts, self.inclusive)

    def filter(self, filter_fn):
        """The counts for whose function `filter_fn` is true."""
        kept = tuple(one for one in self if filter_fn(one.function))
        return FunctionCounts(kept, self.inclusive)

    def sum(self):
        """All counts together."""
        return sum(c for c, _ in self)

    def denoise(self):
        """Without functions of the interpreter whose counts differ from run to run."""
        return self.filter(lambda name: not any(noise in name for noise in _NOISE))

    def _merged(self, second, sign):
        if self.inclusive != second.inclusive:
            raise AssertionError(
                "FunctionCounts: expected two that are inclusive, or two that are not"
            )
        counts = {name: c for c, name in self}
        for c, name in second:
            counts[name] = counts.get(name, 0) + sign * c
        return self._from_dict(counts, self.inclusive)

    @staticmethod
    def _from_dict(counts, inclusive):
        ordered = sorted(((c, name) for name, c in counts.items() if c), reverse=True)
        return FunctionCounts(tuple(FunctionCount(c, name) for c, name in ordered), inclusive)


def _shortened(text, most):
    """A text with its middle left out where it is too long."""
    if len(text) <= most:
        return text
    left = (most - 5) // 2
    return f"{text[:left]} ... {text[len(text) - (most - 5 - left) :]}"


@dataclasses.dataclass(repr=False, eq=False, frozen=True)
class CallgrindStats:
    """Instructions of a statement, and of the loop around an empty one.

    Args:
        task_spec (TaskSpec): what ran.
        number_per_run (int): how often.
        built_with_debug_symbols (bool): whether functions are known by file.
        baseline_inclusive_stats, baseline_exclusive_stats (FunctionCounts): of the empty one.
        stmt_inclusive_stats, stmt_exclusive_stats (FunctionCounts): of the statement.
        stmt_callgrind_out (str, optional): Callgrind's own file, as text.
    """

    task_spec: TaskSpec
    number_per_run: int
    built_with_debug_symbols: bool
    baseline_inclusive_stats: FunctionCounts
    baseline_exclusive_stats: FunctionCounts
    stmt_inclusive_stats: FunctionCounts
    stmt_exclusive_stats: FunctionCounts
    stmt_callgrind_out: str | None

    def __repr__(self):
        kind, base = type(self), self.baseline_exclusive_stats
        threads = self.task_spec.num_threads

        def row(label, plain, quiet):
            return f"    {label:<14}{plain:>12}{quiet:>27}"

        lines = [
            f"<{kind.__module__}.{kind.__name__} object at {id(self):#x}>",
            self.task_spec.summarize(),
            f"{'All':>30}{'Noisy symbols removed':>31}",
            row("Instructions:", self.counts(), self.counts(denoise=True)),
            row("Baseline:", base.sum(), base.denoise().sum()),
            f"{self.number_per_run} runs per measurement, {threads} thread{'s' * (threads > 1)}",
        ]
        if not self.built_with_debug_symbols:
            lines.append("Without debug symbols: functions are not known by file.")
        return "\n".join(lines)

    def stats(self, inclusive=False):
        """The statement's counts by function, with or without the functions that each calls."""
        return self.stmt_inclusive_stats if inclusive else self.stmt_exclusive_stats

    def counts(self, *, denoise=False):
        """All instructions of the statement."""
        stats = self.stmt_exclusive_stats
        return (stats.denoise() if denoise else stats).sum()

    def delta(self, other, inclusive=False):
        """The counts by function that this statement has more than another."""
        return self.stats(inclusive) - other.stats(inclusive)

    def as_standardized(self):
        """The same counts with names that do not depend on where a library was built or lies."""

        def standard(name):
            # The first folder of a build that is called build, and the library at the end.
            name = re.sub(r"^.*?(build/)", r"\1", name)
            return re.sub(r"\s\[[^\]]*\]$", "", name)

        changed = {
            field.name: getattr(self, field.name).transform(standard)
            for field in dataclasses.fields(self)
            if field.name.endswith("clusive_stats")
        }
        return dataclasses.replace(self, **changed)


class Serialization(enum.Enum):
    """How a global gets to the process that Callgrind watches."""

    PICKLE = 0
    TORCH = 1
    TORCH_JIT = 2


class CopyIfCallgrind:
    """A global of a statement that Callgrind's process gets a copy of.

    Args:
        value: text, bytes, a number or a module.
        setup (str, optional): what the process runs before it reads the copy.

    Raises:
        ValueError: another type.

    Example:
        >>> CopyIfCallgrind(3).serialization.name
        'PICKLE'
    """

    def __init__(self, value, *, setup=None):
        self._value, self._setup = value, setup
        self._serialization = self._way_of(value)

    @staticmethod
    def _way_of(value):
        from facula import jit, nn

        if isinstance(value, (str, bytes, bool, int, float, complex)):
            return Serialization.PICKLE
        if isinstance(value, (jit.ScriptFunction, jit.ScriptModule)):
            return Serialization.TORCH_JIT
        if isinstance(value, nn.Module):
            return Serialization.TORCH
        raise ValueError(
            "CopyIfCallgrind(): expected text, bytes, a number or a module; got "
            f"{type(value).__name__}"
        )

    @property
    def value(self):
        """What is copied."""
        return self._value

    @property
    def setup(self):
        """What runs before the copy is read."""
        return self._setup

    @property
    def serialization(self):
        """How it is copied."""
        return self._serialization

    @staticmethod
    def unwrap_all(globals):
        """A dict of globals with the values in place of wrappers."""
        return {
            name: value.value if isinstance(value, CopyIfCallgrind) else value
            for name, value in globals.items()
        }
