"""Reads the memory in which processes note their calls (src/distributed/flight_recorder.h)."""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
from typing import NamedTuple

_NAME = "facula_flight_recorder"
_HEADER = struct.Struct("<8s4IqQQqqqq64s")
_HEADER_BYTES = 4096
_MAGIC, _LAYOUT = b"FACULAFR", 1
_RECORD = struct.Struct("<QQqqqqiiB48s16s16s16s7xQqq4B3i3b5x8q112s")
_STATES = ("scheduled", "started", "completed", "failed")
_MOST_SIZES = 8


class Call(NamedTuple):
    """A call to a group; times are nanoseconds of the monotonic clock, 0 for what is to come."""

    number: int  # among all calls of the process
    state: str  # scheduled, started, completed or failed
    scheduled_ns: int
    started_ns: int
    ended_ns: int
    nbytes: int
    rank: int  # of the group
    size: int
    group: str
    name: str  # all_reduce ...
    reduction: str
    dtype: str
    shape: tuple
    sequence: int  # among the collectives of the group; 0 for messages
    root: int
    tag: int
    is_async: bool
    place: str  # file and line

    @property
    def is_open(self):
        """Whether it has not ended."""
        return self.state in ("scheduled", "started")

    @property
    def text(self):
        """What was called, as errors say it."""
        details = []
        if self.name in ("all_reduce", "reduce", "reduce_scatter"):
            details.append(self.reduction)
        if self.root >= 0:
            details.append(f"{'rank' if self.name in ('send', 'recv') else 'root'} {self.root}")
        text = self.name + (f"({', '.join(details)})" if details else "")
        return text + (f" {self.dtype} {list(self.shape)}" if self.dtype else "")


class Process(NamedTuple):
    """A process and its last calls, the oldest first."""

    pid: int
    clock_offset_ns: int  # what the clock of the world is ahead of the monotonic one
    made: int  # calls that were made, with those that the memory keeps no more
    steps: int  # of optimizers
    stepped_ns: int
    step_ns: int  # between the last two steps
    done: int  # of a loop that shows its progress
    total: int  # of its rounds; 0 if there is no such loop, -1 if it does not know
    job: str  # the same for the processes of one program
    calls: list


def _text(raw):
    return raw.split(b"\0", 1)[0].decode(errors="replace")


def _call_of(fields):
    (_, number, scheduled, started, ended, nbytes, rank, size, state) = fields[:9]
    group, name, reduction, dtype = map(_text, fields[9:13])
    (sequence, _, _, _, _, _, ndim, root, tag, _, _, is_async, _) = fields[13:26]
    sizes, place = fields[26:34], _text(fields[34])
    state = _STATES[state] if state < len(_STATES) else "?"
    shape = tuple(sizes[: min(ndim, _MOST_SIZES)])
    times = (scheduled, started, ended)
    return Call(
        number, state, *times, nbytes, rank, size, group, name, reduction, dtype, shape,
        sequence, root, tag, bool(is_async), place,
    )  # fmt: skip


def _read_call(memory, at):
    """A call, or None where there is none or it is being written; see Writing in the C++ source."""
    for _ in range(20):
        fields = _RECORD.unpack_from(memory, at)
        (version,) = struct.unpack_from("<Q", memory, at)
        if version == fields[0] and version % 2 == 0:
            return _call_of(fields) if fields[1] else None
    return None


def read_file(file, pid):
    """The process whose memory a file is.

    Args:
        file (int): a descriptor.
        pid (int): the process, for errors.

    Raises:
        ValueError: the file is something else, or of another version of facula.
    """
    size = os.fstat(file).st_size
    if size < _HEADER_BYTES:
        raise ValueError(f"process {pid}: expected a flight recorder; got a file of {size} bytes")
    with contextlib.closing(mmap.mmap(file, size, prot=mmap.PROT_READ)) as memory:
        magic, layout, record_bytes, records, process, offset, *numbers, job = _HEADER.unpack_from(
            memory, 0
        )
        if magic != _MAGIC or layout != _LAYOUT or record_bytes != _RECORD.size:
            raise ValueError(f"process {pid}: expected a flight recorder of this facula's layout")
        fits = (size - _HEADER_BYTES) // _RECORD.size
        calls = (
            _read_call(memory, _HEADER_BYTES + i * _RECORD.size) for i in range(min(records, fits))
        )
        calls = sorted((c for c in calls if c is not None), key=lambda c: c.number)
    return Process(process, offset, *numbers, _text(job), calls)


def read_own():
    """This process, or None if it keeps no records."""
    from facula import _C

    file = _C._distributed.flight_recorder_descriptor()
    return None if file is None else read_file(file, os.getpid())


def read(pid):
    """What a process of this user has called, whatever it does now.

    Args:
        pid (int): its number.

    Returns:
        Process

    Raises:
        ProcessLookupError: there is no such process.
        PermissionError: it is another user's.
        ValueError: it keeps no records.
    """
    folder = f"/proc/{pid}/fd"
    try:
        links = os.listdir(folder)
    except FileNotFoundError:
        raise ProcessLookupError(f"expected a process that runs; got {pid}") from None
    for link in links:
        path = f"{folder}/{link}"
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if _NAME not in os.readlink(path):
                continue
            file = os.open(path, os.O_RDONLY)
            try:
                found = read_file(file, pid)
            finally:
                os.close(file)
            if found.pid == pid:  # and no file that a forked child has inherited
                return found
    raise ValueError(f"process {pid} has called no process group of facula, or keeps no records")


def find():
    """All processes of this user that keep records, by number.

    Returns:
        list of Process
    """
    found = []
    for name in sorted((n for n in os.listdir("/proc") if n.isdigit()), key=int):
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            found.append(read(int(name)))
    return found
