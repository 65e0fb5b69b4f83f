"""References to values of other workers: who owns them, who else has one, and when they go.

Each copy of a reference (a fork) has a name of its own. Whoever makes one tells the owner before
sending it on, by the connection that would later tell that its own is gone; so the owner never
knows of fewer references than there are. Only the message that a fork is gone may come before that
of its making, by another way: the owner then remembers it.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from facula.futures import Future


class GloballyUniqueId(NamedTuple):
    """A name that no other worker makes."""

    created_on: int
    local_id: int

    def __repr__(self):
        return f"GloballyUniqueId(created_on={self.created_on}, local_id={self.local_id})"

    __str__ = __repr__


class _Owned:
    """A value that others refer to, or will: it may not be there yet."""

    def __init__(self, id):
        self.id, self.future = id, Future()
        self.forks, self.gone = set(), set()


class References:
    """The values of this worker that others refer to.

    Args:
        rank (int): of this worker.
    """

    def __init__(self, rank):
        self.rank = rank
        # Deletion of a reference may come at any moment, also while this thread holds the lock.
        self.lock = threading.RLock()
        self.owned, self.next_id = {}, 0

    def new_id(self):
        """A name for a value or a fork."""
        with self.lock:
            id = GloballyUniqueId(self.rank, self.next_id)
            self.next_id += 1
            return id

    def get(self, id):
        """The entry of a value, which may be still to come."""
        with self.lock:
            return self.owned.setdefault(id, _Owned(id))

    def keep(self, owned):
        """Enter a value that was of this worker alone."""
        with self.lock:
            self.owned[owned.id] = owned

    def add_fork(self, id, fork):
        """Somebody has a reference."""
        with self.lock:
            entry = self.get(id)
            if fork in entry.gone:
                entry.gone.remove(fork)
                self._drop_if_unused(entry)
            else:
                entry.forks.add(fork)

    def delete_fork(self, id, fork):
        """Somebody has it no more."""
        with self.lock:
            entry = self.get(id)
            if fork in entry.forks:
                entry.forks.remove(fork)
                self._drop_if_unused(entry)
            else:
                entry.gone.add(fork)

    def _drop_if_unused(self, entry):
        if not entry.forks and not entry.gone:
            self.owned.pop(entry.id, None)
