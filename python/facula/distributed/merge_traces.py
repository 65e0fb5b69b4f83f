"""python -m facula.distributed.merge_traces: traces of ranks as one, and how far calls overlap.

Each rank writes a trace by `facula.profiler.profile(...).export_chrome_trace`. In the merged one
each rank is a process, on one clock.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import sys

__all__ = ["merge", "overlap"]


def _load(path):
    opened = gzip.open if os.fspath(path).endswith(".gz") else open
    with opened(path, "rt") as file:
        try:
            trace = json.load(file)
        except ValueError as error:
            raise ValueError(f"{path}: expected a trace in JSON; got {error}") from None
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        raise ValueError(f"{path}: expected a trace with traceEvents")
    return trace


def _collectives(trace):
    """(group, sequence) -> the end of the collective, in microseconds."""
    return {
        (e["args"]["group"], e["args"]["sequence"]): e["ts"] + e["dur"]
        for e in trace["traceEvents"]
        if e.get("cat") == "collective" and e["args"].get("sequence")
    }


def _shifts(traces, align):
    """Microseconds to add to each trace's times."""
    if align == "clock":
        return [trace.get("clock_offset_us", 0.0) for trace in traces]
    first, shifts = _collectives(traces[0]), []
    for trace in traces:
        ends = _collectives(trace)
        common = sorted(first.keys() & ends.keys())
        if not common:
            raise ValueError(
                "merge(): expected collectives that all ranks have called, to align their clocks "
                'by; got none in common (align="clock" takes the machines\' clocks)'
            )
        shifts.append(statistics.median(first[key] - ends[key] for key in common))
    return shifts


def merge(traces, align="clock"):
    """One trace of several ranks.

    Args:
        traces (list of dict): what the ranks have written, as JSON gives it.
        align (str): "clock": by the clocks of the machines; "calls": as if each collective had
            ended at all ranks together, for machines whose clocks differ.

    Returns:
        dict: a trace; its processes are the ranks

    Raises:
        ValueError: no traces, another `align`, two traces of one rank, or no collectives to align
            by.
    """
    if not traces:
        raise ValueError("merge(): expected at least one trace; got none")
    if align not in ("clock", "calls"):
        raise ValueError(f'merge(): expected "clock" or "calls" as align; got {align!r}')
    events, seen = [], set()
    for place, (trace, shift) in enumerate(zip(traces, _shifts(traces, align), strict=True)):
        rank = trace.get("distributedInfo", {}).get("rank", place)
        if rank in seen:
            raise ValueError(f"merge(): expected one trace of each rank; got two of rank {rank}")
        seen.add(rank)
        events.append(
            {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank}"}}
        )
        events.append(
            {"ph": "M", "name": "process_sort_index", "pid": rank, "args": {"sort_index": rank}}
        )
        for event in trace["traceEvents"]:
            moved = {**event, "pid": rank}
            if "ts" in event:
                moved["ts"] = event["ts"] + shift
            events.append(moved)
    start = min((e["ts"] for e in events if "ts" in e), default=0.0)
    for event in events:
        if "ts" in event:
            event["ts"] -= start
    return {"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": events}


def _joined(spans):
    """Spans of time without those that overlap."""
    found = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1][1] = max(end, found[-1][1])
        else:
            found.append([begin, end])
    return found


def _common(a, b):
    """How long two sorted lists of spans overlap."""
    total, j = 0.0, 0
    for begin, end in a:
        while j < len(b) and b[j][1] <= begin:
            j += 1
        k = j
        while k < len(b) and b[k][0] < end:
            total += min(end, b[k][1]) - max(begin, b[k][0])
            k += 1
    return total


def overlap(trace):
    """How much of the collectives' time operators of the same rank run beside.

    Args:
        trace (dict): of one rank, or merged.

    Returns:
        dict: from a rank (or process) to (microseconds of collectives, of them beside operators)
    """
    moving, computing = {}, {}
    for event in trace["traceEvents"]:
        if event.get("ph") != "X":
            continue
        of = moving if event.get("cat") == "collective" else computing
        if event.get("cat") in ("collective", "cpu_op") and not event["name"].endswith(":barrier"):
            span = (event["ts"], event["ts"] + event["dur"])
            of.setdefault(event["pid"], []).append(span)
    found = {}
    for rank, spans in sorted(moving.items()):
        spans = _joined(spans)
        beside = _common(spans, _joined(computing.get(rank, [])))
        found[rank] = (sum(end - begin for begin, end in spans), beside)
    return found


def _arguments(words):
    parser = argparse.ArgumentParser(
        prog="python -m facula.distributed.merge_traces",
        description="Merges the Chrome traces of ranks into one, and prints how much of the "
        "collectives' time operators run beside.",
    )
    parser.add_argument("out", help="the merged trace, for chrome://tracing or Perfetto")
    parser.add_argument("traces", nargs="+", help="a trace of each rank")
    parser.add_argument(
        "--align",
        choices=("clock", "calls"),
        default="clock",
        help="by the machines' clocks, or as if collectives ended at all ranks together",
    )
    return parser.parse_args(words)


def main(words=None):
    """Merge files.

    Args:
        words (list of str): arguments of the command line.

    Returns:
        int: 0, or 2 where a trace cannot be read
    """
    arguments = _arguments(words)
    try:
        merged = merge([_load(path) for path in arguments.traces], arguments.align)
        opened = gzip.open if arguments.out.endswith(".gz") else open
        with opened(arguments.out, "wt") as file:
            json.dump(merged, file)
    except (OSError, ValueError) as error:
        print(f"merge_traces: {error}", file=sys.stderr)
        return 2
    for rank, (moving, beside) in overlap(merged).items():
        share = 100 * beside / moving if moving else 0.0
        print(f"rank {rank}: collectives {moving / 1e3:.1f} ms, {share:.0f} % beside operators")
    return 0


if __name__ == "__main__":
    sys.exit(main())
