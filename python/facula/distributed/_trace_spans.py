"""Calls to process groups as spans of the profiler, from the records of the flight recorder."""

from __future__ import annotations

from facula.autograd.profiler_util import FunctionEvent
from facula.distributed import _world as world
from facula.distributed.flight_recorder import read_own

# Tracks of groups in a trace, beside the numbers of threads, which are below 2**22.
_FIRST_TRACK = 1 << 30


class Span(FunctionEvent):
    """One call to a group, from when it began to move data until it had ended.

    Args:
        number (int): the event's.
        call (Call): what was recorded.
        backend (str): for its name.
        track (int): stands for a thread.
        until_us (float): the end of a call that has not ended.
    """

    is_async = True  # beside the thread's own work, so no part of its time

    def __init__(self, number, call, backend, track, until_us):
        end = call.ended_ns / 1e3 if call.ended_ns else until_us
        start = (call.started_ns or call.scheduled_ns) / 1e3
        super().__init__(number, f"{backend}:{call.name}", track, start, end)
        self.input_shapes = [list(call.shape)]
        self.call = call

    @property
    def track_name(self):
        """What the track is called in a trace."""
        what = "messages" if self.call.name in ("send", "recv") else "collectives"
        return f"{what} of group {self.call.group}, rank {self.call.rank} of {self.call.size}"

    def trace_args(self):
        """What a trace shows beside the span."""
        call = self.call
        began = call.started_ns or call.scheduled_ns
        return {
            "group": call.group,
            "rank": call.rank,
            "group_size": call.size,
            "sequence": call.sequence,
            "what": call.text,
            "dtype": call.dtype,
            "bytes": call.nbytes,
            "where": call.place,
            "queued_us": (began - call.scheduled_ns) / 1e3,
        }


def spans(number, since_us, until_us):
    """The calls of this process that were made within some time.

    Args:
        number (int): of the first event.
        since_us, until_us (float): the time, by `time.perf_counter_ns`.

    Returns:
        list of Span
    """
    own = read_own()
    if own is None:
        return []
    backends = {name: _world_backend(pg) for pg, name in world._world.pg_names.items()}
    tracks, found = {}, []
    for call in own.calls:
        if not since_us <= call.scheduled_ns / 1e3 <= until_us:
            continue
        key = (call.group, call.rank, call.name in ("send", "recv"))
        track = tracks.setdefault(key, _FIRST_TRACK + len(tracks))
        backend = backends.get(call.group, "gloo")
        found.append(Span(number + len(found), call, backend, track, until_us))
    return found


def _world_backend(group):
    return str(world._world.pg_map[group][0]).rpartition(":")[2] or "gloo"


def facts():
    """What a trace says of the ranks, for tools that merge traces; empty without a group."""
    if not world.is_initialized():
        return {}
    own = read_own()
    return {
        "distributedInfo": {
            "backend": world.get_backend(),
            "rank": world.get_rank(),
            "world_size": world.get_world_size(),
        },
        "clock_offset_us": own.clock_offset_ns / 1e3 if own else 0.0,
    }
