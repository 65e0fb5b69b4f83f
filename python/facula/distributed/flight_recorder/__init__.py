"""What each rank has called where, read while it hangs.

Each process keeps its last calls to process groups in memory that the user's other processes can
read. `python -m facula.distributed.flight_recorder` prints them beside each other and says who
waits for whom.
"""

from __future__ import annotations

import json
import os
import pickle
import time

from facula.distributed.flight_recorder._memory import Call, Process, find, read, read_own

__all__ = ["Call", "Process", "dump", "entries", "find", "read", "read_own", "waiting"]


def waiting(processes):
    """Who waits for whom, by group.

    Args:
        processes (list of Process): those that are compared; others of the groups are not known.

    Returns:
        dict: from a group's name to a list of (rank, Call, ranks that it waits for); the last is
            empty where all known ranks have come, and None for a message from any rank.
    """
    last = {}  # (group, rank) -> the newest call, the oldest open one, the last sequence number
    for process in processes:
        for call in process.calls:
            entry = last.setdefault((call.group, call.rank), {"open": None, "sequence": 0})
            entry["sequence"] = max(entry["sequence"], call.sequence)
            if call.is_open and entry["open"] is None and call.name != "none":
                entry["open"] = call
    found = {}
    for (group, rank), entry in sorted(last.items()):
        call = entry["open"]
        if call is not None:
            found.setdefault(group, []).append((rank, call, _awaited(last, rank, call)))
    return found


def _awaited(last, rank, call):
    if call.name in ("send", "recv"):
        return None if call.root < 0 else [call.root]
    return [
        other
        for (group, other), entry in sorted(last.items())
        if group == call.group and other != rank and entry["sequence"] < call.sequence
    ]


def entries(process):
    """A process's calls in the form that PyTorch's tools read (`version` 2.10).

    Args:
        process (Process): what `read` gives.

    Returns:
        dict: "version", "pg_config", "pg_status", "rank" and "entries"
    """
    groups, status, found = {}, {}, []
    for call in process.calls:
        groups.setdefault(
            call.group,
            {"name": call.group, "desc": "default_pg", "ranks": str(list(range(call.size)))},
        )
        known = status.setdefault(
            call.group,
            {
                "last_enqueued_collective": 0,
                "last_started_collective": 0,
                "last_completed_collective": 0,
            },
        )
        reached = ["enqueued", "started", "completed"][: _reached(call)]
        for state in reached:
            key = f"last_{state}_collective"
            known[key] = max(known[key], call.sequence)
        found.append(_entry(call))
    rank = process.calls[0].rank if process.calls else 0
    return {
        "version": "2.10",
        "pg_config": groups,
        "pg_status": status,
        "rank": rank,
        "entries": found,
    }


def _reached(call):
    return {"scheduled": 1, "started": 2}.get(call.state, 3)


def _entry(call):
    file, _, line = call.place.rpartition(":")
    is_message = call.name in ("send", "recv")
    return {
        "frames": [{"name": "", "filename": file, "line": int(line) if line.isdigit() else 0}],
        "record_id": call.number - 1,
        "pg_id": 0,
        "process_group": [call.group, "default_pg"],
        "collective_seq_id": call.sequence,
        "p2p_seq_id": 0,
        "op_id": call.sequence,
        "profiling_name": f"gloo:{call.name}",
        "time_created_ns": call.scheduled_ns,
        "input_sizes": [list(call.shape)],
        "input_dtypes": [call.dtype],
        "output_sizes": [list(call.shape)],
        "output_dtypes": [call.dtype],
        "state": call.state,
        "time_discovered_started_ns": call.started_ns or None,
        "time_discovered_completed_ns": call.ended_ns or None,
        "retired": not call.is_open,
        "is_p2p": is_message,
    }


def dump(path):
    """Write this process's calls to a file, as JSON, or pickled for PyTorch's tools.

    Args:
        path (str): the file; one that ends in .json is JSON.

    Raises:
        RuntimeError: this process keeps no records.
        OSError: the file cannot be written.
    """
    own = read_own()
    if own is None:
        raise RuntimeError("dump(): expected a process that keeps records; got one that does not")
    if os.fspath(path).endswith(".json"):
        with open(path, "w") as file:
            json.dump(entries(own), file)
        return
    with open(path, "wb") as file:
        pickle.dump(entries(own), file)


def age_text(nanoseconds):
    """A time as text.

    Example:
        >>> age_text(1_500_000), age_text(2_000_000_000)
        ('1.5 ms', '2.0 s')
    """
    if nanoseconds < 1e9:
        return f"{nanoseconds / 1e6:.1f} ms"
    return f"{nanoseconds / 1e9:.1f} s"


def now_ns():
    """The clock of the records, which all processes of a machine share."""
    return time.monotonic_ns()
