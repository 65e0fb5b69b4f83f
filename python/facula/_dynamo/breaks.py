"""Where a compiled function has to run what was recorded: `fullgraph=True`, and `explain`."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field

from facula import _C
from facula._dynamo.exc import Unsupported
from facula._dynamo.units import noting_units, shown_bytes
from facula._logging import say

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def place_in_program():
    """The innermost file and line outside of the package; (None, 0) if there is none."""
    frame = sys._getframe(1)
    while frame and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else (None, 0)


def _line_of_program():
    """The innermost line outside of the package, as "file:line"."""
    file, line = place_in_program()
    return f"{file}:{line}" if file else "an unknown line"


def refuse(reason):
    """Raise Unsupported, which names the line and the reason."""
    raise Unsupported(
        f"compile(fullgraph=True): expected a function without breaks; got one at "
        f"{_line_of_program()}: {reason}"
    )


@dataclass(frozen=True)
class BreakReason:
    """A break: why, and at which line of the program."""

    reason: str
    line: str

    def __str__(self):
        return f"{self.line}: {self.reason}"


@dataclass
class ExplainOutput:
    """What `explain` found.

    Attributes:
        ops_per_graph (list of int): how many operators were put off in each segment.
        break_reasons (list of BreakReason): what ended all segments but the last.
        at_once, dropped, fused, groups (int): operators that could not wait, that nobody needed,
            that ran in groups, and the number of groups.
        units (list of Unit): what ran, in order: groups, and calls by themselves.
    """

    ops_per_graph: list = field(default_factory=list)
    break_reasons: list = field(default_factory=list)
    at_once: int = 0
    dropped: int = 0
    fused: int = 0
    groups: int = 0
    units: list = field(default_factory=list)

    @property
    def graph_count(self):
        """The number of segments."""
        return len(self.ops_per_graph)

    @property
    def graph_break_count(self):
        """The number of breaks."""
        return len(self.break_reasons)

    @property
    def op_count(self):
        """The number of operators that were put off."""
        return sum(self.ops_per_graph)

    @property
    def bytes_before(self):
        """What the calls would have moved one by one."""
        return sum(unit.bytes_alone for unit in self.units)

    @property
    def bytes_after(self):
        """What they moved."""
        return sum(unit.bytes_moved for unit in self.units)

    def __str__(self):
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            f"Run at once: {self.at_once}; dropped: {self.dropped}; "
            f"fused: {self.fused} in {self.groups} groups",
            f"Bytes moved: {shown_bytes(self.bytes_before)} one by one, "
            f"{shown_bytes(self.bytes_after)} in groups",
            *(f"Break {i}: {reason}" for i, reason in enumerate(self.break_reasons, 1)),
            *(f"Unit {i}: {unit}" for i, unit in enumerate(self.units, 1)),
        ]
        return "\n".join(lines)


def call_telling(function, *args, **kwargs):
    """Call a function with the recorder on, and tell what logs ask for."""
    breaks = []

    def note(reason):
        breaks.append(reason)
        say("breaks", f"{_line_of_program()}: {reason}")

    before, peak = _C._recorder_counts(), _C._memory_stats()
    with noting_units() as units:
        result = _C._recorded_telling(note, function, *args, **kwargs)
    now, after = _C._recorder_counts(), _C._memory_stats()
    name = getattr(function, "__qualname__", type(function).__name__)
    recorded, at_once = (now[k] - before[k] for k in ("recorded", "run_at_once"))
    say("graphs", f"{name}: {recorded} calls put off, {at_once} at once, {len(breaks)} breaks")
    for unit in units:
        say("kernels", unit)
        if unit.is_group:
            say("fusion", unit)
    now, highest = shown_bytes(after["allocated"]), shown_bytes(after["peak_allocated"])
    say(
        "memory",
        f"{name}: {now} now, {highest} at most so far; "
        f"{after['allocations'] - peak['allocations']} allocations",
    )
    return result


def explain(f, *extra_args, **extra_kwargs):
    """What compiling a function makes of it.

    Args:
        f (callable): is called once; the result of `explain` takes its arguments.

    Returns:
        a function that returns an ExplainOutput.

    Example:
        >>> def f(x):
        ...     y = x * 2 + 1
        ...     return y if y.sum() > 0 else -y
        >>> found = facula._dynamo.explain(f)(facula.ones(3))
        >>> found.graph_break_count, found.ops_per_graph
        (1, [4, 0])
    """
    if extra_args or extra_kwargs:
        return explain(f)(*extra_args, **extra_kwargs)

    def inner(*args, **kwargs):
        found = ExplainOutput()
        before = start = _C._recorder_counts()

        def note(reason):
            nonlocal before
            now = _C._recorder_counts()
            found.ops_per_graph.append(now["recorded"] - before["recorded"])
            found.break_reasons.append(BreakReason(reason, _line_of_program()))
            before = now

        with noting_units() as found.units:
            _C._recorded_telling(note, f, *args, **kwargs)
        end = _C._recorder_counts()
        found.ops_per_graph.append(end["recorded"] - before["recorded"])
        found.at_once = end["run_at_once"] - start["run_at_once"]
        found.dropped, found.fused, found.groups = (
            end[k] - start[k] for k in ("dropped", "fused", "groups")
        )
        return found

    return inner
