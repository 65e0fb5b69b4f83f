"""What the recorder has run, for people: calls and groups with the memory they moved, and time."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

from facula import _C


@dataclass(frozen=True)
class Unit:
    """A call that ran by itself, or a group of calls that ran in one pass over memory.

    Attributes:
        calls (tuple of str): names of operators, in order.
        sizes (tuple of int): of the first one's result.
        bytes_read, bytes_written (int): from and to memory that is not the group's own.
        bytes_alone (int): what the calls would have read and written one by one.
        start, nanoseconds (int): of a steady clock.
    """

    calls: tuple
    sizes: tuple
    bytes_read: int
    bytes_written: int
    bytes_alone: int
    start: int
    nanoseconds: int

    @property
    def bytes_moved(self):
        """What was read and written."""
        return self.bytes_read + self.bytes_written

    @property
    def is_group(self):
        """Whether several calls ran in one pass."""
        return len(self.calls) > 1

    def __str__(self):
        kind = "group" if self.is_group else "call"
        saved = f" (one by one {shown_bytes(self.bytes_alone)})" if self.is_group else ""
        return (
            f"{kind} {' '.join(self.calls)} {list(self.sizes)}: "
            f"{shown_bytes(self.bytes_moved)}{saved}, {self.nanoseconds / 1000:.1f} us"
        )


def shown_bytes(count):
    """A number of bytes with a unit.

    Example:
        >>> shown_bytes(2048)
        '2.0 KiB'
    """
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


@contextmanager
def noting_units():
    """A context that gives a list, in which there are the Units of this thread when it ends."""
    found = []
    _C._note_recorded_units(True)
    try:
        yield found
    finally:
        found.extend(Unit(**unit) for unit in _C._recorded_units())
        _C._note_recorded_units(False)
