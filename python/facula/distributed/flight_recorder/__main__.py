"""python -m facula.distributed.flight_recorder: the last calls of ranks, beside each other."""

from __future__ import annotations

import argparse
import sys

from facula.distributed import flight_recorder


def _arguments(words):
    parser = argparse.ArgumentParser(
        prog="python -m facula.distributed.flight_recorder",
        description="Prints what the ranks of a program have called last, and who waits for whom. "
        "It reads the memory of processes that run, so it also works while they hang.",
    )
    parser.add_argument(
        "pids", nargs="*", type=int, metavar="PID", help="processes; all of this user's by default"
    )
    parser.add_argument(
        "-n", "--last", type=int, default=5, help="calls of each rank that are shown (5)"
    )
    return parser.parse_args(words)


def _state_of(call, now):
    if call.is_open:
        since = flight_recorder.age_text(now - (call.started_ns or call.scheduled_ns))
        return f"{call.state} {since} ago"
    took = flight_recorder.age_text(call.ended_ns - call.scheduled_ns)
    return f"{call.state} in {took}"


def _rows(processes, last, now):
    """A row for each call that is shown: group, rank, process, number, call, place, state."""
    shown = {}
    for process in processes:
        for call in process.calls:
            shown.setdefault((call.group, call.rank, process.pid), []).append(call)
    for (group, rank, pid), calls in sorted(shown.items()):
        for call in calls[-last:]:
            number = f"#{call.sequence}" if call.sequence else "-"
            yield group, str(rank), str(pid), number, call.text, call.place, _state_of(call, now)


def _print_table(rows):
    header = ("group", "rank", "process", "call", "what", "where", "state")
    rows = [header, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    for row in rows:
        print(
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        )


def _print_waiting(processes, now):
    for group, found in flight_recorder.waiting(processes).items():
        for rank, call, awaited in found:
            since = flight_recorder.age_text(now - call.scheduled_ns)
            if awaited is None:
                whom = "a message of any rank"
            elif awaited:
                whom = ("rank " if len(awaited) == 1 else "ranks ") + ", ".join(map(str, awaited))
            else:
                whom = "nobody who has not come; data moves, or other processes are not known"
            print(
                f"group {group}: rank {rank} has been in {call.text} for {since}; waits for {whom}"
            )


def main(words=None):
    """Print the table.

    Args:
        words (list of str): arguments of the command line.

    Returns:
        int: 0, 1 if there is nothing to show, or 2 for a process that cannot be read
    """
    arguments = _arguments(words)
    if arguments.last < 1:
        print(
            f"flight_recorder: expected --last of at least 1; got {arguments.last}", file=sys.stderr
        )
        return 2
    try:
        processes = [flight_recorder.read(pid) for pid in arguments.pids]
    except (OSError, ValueError) as error:
        print(f"flight_recorder: {error}", file=sys.stderr)
        return 2
    if not arguments.pids:
        processes = flight_recorder.find()
    processes = [p for p in processes if p.calls]
    if not processes:
        print("flight_recorder: no process of yours has called a process group", file=sys.stderr)
        return 1
    now = flight_recorder.now_ns()
    _print_table(_rows(processes, arguments.last, now))
    print()
    _print_waiting(processes, now)
    return 0


if __name__ == "__main__":
    sys.exit(main())
