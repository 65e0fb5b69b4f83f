"""python -m facula.distributed.monitor: what the ranks on this machine do, again and again.

It reads what processes note of themselves (`facula.distributed.flight_recorder`), so it neither
slows them down nor needs their help.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import NamedTuple

from facula.distributed import flight_recorder

_HEADER = ("rank", "process", "step", "ms a step", "calls/s", "MB/s", "does")
_DEFAULT_GROUP = "0"


class Row(NamedTuple):
    """What one rank does."""

    job: str
    rank: int
    pid: int
    steps: int
    step_ms: float  # 0 before there are two
    calls_per_second: float
    megabytes_per_second: float
    does: str


def _ranks_of(process):
    """The calls of each rank that a process is: one, or several that are threads."""
    own = [c for c in process.calls if c.group == _DEFAULT_GROUP] or process.calls
    group = own[0].group
    ranks = {c.rank: [] for c in own if c.group == group}
    for call in process.calls:
        if len(ranks) == 1 or call.group == group:
            ranks.get(call.rank if len(ranks) > 1 else own[0].rank, []).append(call)
    return ranks


def _does(calls, waiting, now):
    call = next((c for c in calls if c.is_open), None)
    if call is None:
        since = now - max((c.ended_ns for c in calls), default=now)
        return f"computes since {flight_recorder.age_text(since)}"
    text = f"{call.text} since {flight_recorder.age_text(now - call.scheduled_ns)}"
    for rank, waits, awaited in waiting.get(call.group, []):
        if rank == call.rank and waits.number == call.number and awaited:
            text += f"; waits for {', '.join(map(str, awaited))}"
    return text


def rows(processes, seconds, now):
    """What each rank does.

    Args:
        processes (list of Process): what `flight_recorder.find` gives.
        seconds (float): the time before `now` that speeds are taken over.
        now (int): nanoseconds of the monotonic clock.

    Returns:
        list of Row: by program and rank
    """
    found = []
    for job in sorted({p.job for p in processes}):
        of_job = [p for p in processes if p.job == job and p.calls]
        waiting = flight_recorder.waiting(of_job)
        for process in of_job:
            for rank, calls in _ranks_of(process).items():
                recent = [c for c in calls if c.ended_ns and c.ended_ns > now - seconds * 1e9]
                moved = sum(c.nbytes for c in recent)
                found.append(
                    Row(
                        job,
                        rank,
                        process.pid,
                        process.steps,
                        process.step_ns / 1e6,
                        len(recent) / seconds,
                        moved / 1e6 / seconds,
                        _does(calls, waiting, now),
                    )
                )
    return sorted(found)


def table(found):
    """Rows as lines of text.

    Args:
        found (list of Row): what `rows` gives.

    Returns:
        str
    """
    lines, job = [], None
    cells = [
        (
            str(r.rank),
            str(r.pid),
            str(r.steps),
            f"{r.step_ms:.1f}" if r.step_ms else "-",
            f"{r.calls_per_second:.0f}",
            f"{r.megabytes_per_second:.1f}",
            r.does,
        )
        for r in found
    ]
    widths = [max(map(len, column)) for column in zip(_HEADER, *cells, strict=True)]
    for row, cell in zip(found, cells, strict=True):
        if row.job != job:
            job = row.job
            lines += [*([""] if lines else []), job or "(no name)", _line(_HEADER, widths)]
        lines.append(_line(cell, widths))
    return "\n".join(lines)


def _line(cells, widths):
    numbers = [c.rjust(w) for c, w in zip(cells[:-1], widths, strict=False)]
    return "  ".join([*numbers, cells[-1]])


def _arguments(words):
    parser = argparse.ArgumentParser(
        prog="python -m facula.distributed.monitor",
        description="Shows steps and speed of the ranks on this machine, and who waits for whom.",
    )
    parser.add_argument("-i", "--interval", type=float, default=1.0, help="seconds (1)")
    parser.add_argument("--once", action="store_true", help="one table, and end")
    arguments = parser.parse_args(words)
    if not arguments.interval > 0:
        parser.error(f"expected --interval above 0; got {arguments.interval}")
    return arguments


def main(words=None):
    """Show tables until Ctrl-C, or one.

    Args:
        words (list of str): arguments of the command line.

    Returns:
        int: 0
    """
    arguments = _arguments(words)
    clear = "\033[H\033[2J" if sys.stdout.isatty() and not arguments.once else ""
    try:
        while True:
            processes = flight_recorder.find()
            found = rows(processes, arguments.interval, time.monotonic_ns())
            text = table(found) if found else "no process of yours has called a process group yet"
            print(f"{clear}{text}", flush=True)
            if arguments.once:
                return 0
            time.sleep(arguments.interval)
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
