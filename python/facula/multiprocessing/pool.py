"""Pools of processes."""

from __future__ import annotations

import multiprocessing.pool

from facula.multiprocessing.queue import SimpleQueue


class Pool(multiprocessing.pool.Pool):
    """A pool whose arguments and results may be tensors."""

    def _setup_queues(self):
        self._inqueue = SimpleQueue(ctx=self._ctx)
        self._outqueue = SimpleQueue(ctx=self._ctx)
        self._quick_put = self._inqueue._writer.send
        self._quick_get = self._outqueue._reader.recv
