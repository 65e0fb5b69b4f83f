"""Queues whose items may be tensors."""

from __future__ import annotations

import multiprocessing.queues
from multiprocessing.reduction import ForkingPickler

from facula.multiprocessing.reductions import init_reductions

init_reductions()


class ConnectionWrapper:
    """A connection whose send() and recv() take anything that can be sent.

    Args:
        conn: a `multiprocessing.connection.Connection`.
    """

    def __init__(self, conn):
        self.conn = conn

    def send(self, obj):
        """Send an object."""
        self.conn.send_bytes(ForkingPickler.dumps(obj))

    def recv(self):
        """Receive an object."""
        return ForkingPickler.loads(self.conn.recv_bytes())

    def __getattr__(self, name):
        if "conn" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'conn'")
        return getattr(self.conn, name)


class Queue(multiprocessing.queues.Queue):
    """A queue with a thread that sends."""


class SimpleQueue(multiprocessing.queues.SimpleQueue):
    """A queue that is a pipe and locks."""
