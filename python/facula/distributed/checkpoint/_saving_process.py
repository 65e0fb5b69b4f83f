"""A process beside each rank that saves states, so that training keeps its interpreter's time."""

from __future__ import annotations

import signal
import socket
import threading

import facula.distributed as dist
from facula import multiprocessing
from facula.distributed.checkpoint._steps import Failure

# While a process starts, the main module is changed: ranks that are threads take turns.
_starting = threading.Lock()


class SavingProcess:
    """This rank's process: those of all ranks have a group of their own.

    Args:
        group (ProcessGroup): the ranks, all of which make one; None where this process saves alone.

    Raises:
        RuntimeError: a process could not start.
    """

    def __init__(self, group):
        rank = dist.get_rank(group) if group is not None else 0
        size = dist.get_world_size(group) if group is not None else 1
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(other, rank, size), daemon=True, name="facula async_save"
        )
        with _starting:
            self._process.start()
        other.close()
        if size > 1:
            self._connect(group, rank)

    def _connect(self, group, rank):
        """Tell the processes where that of rank 0 has its store."""
        port = self._receive() if rank == 0 else None
        places = [None] * dist.get_world_size(group)
        dist.all_gather_object(places, (socket.gethostname(), port), group=group)
        host, port = places[0]
        one_machine = all(name == host for name, _ in places)
        self._send(("localhost" if one_machine else host, port))
        self._take_reply()

    def save(self, state, writer, planner, use_dist):
        """Save a state there; what `save` returns.

        Args:
            state (dict): a copy that nobody changes.
            writer (StorageWriter), planner (SavePlanner or None): can be pickled.
            use_dist (bool): whether the other ranks save with this one.

        Raises:
            RuntimeError: the process has ended.
            BaseException: what it raised.
        """
        self._send((state, writer, planner, use_dist))
        return self._take_reply()

    def _send(self, message):
        try:
            self._connection.send(message)
        except OSError as error:
            raise self._ended() from error

    def _receive(self):
        try:
            return self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._ended() from error

    def _take_reply(self):
        reply = self._receive()
        if isinstance(reply, Failure):
            raise reply.error
        return reply

    def _ended(self):
        self._process.join(5)
        return RuntimeError(
            f"async_save(): the process {self._process.pid} that saves has ended with code "
            f"{self._process.exitcode}"
        )


def _serve(connection, rank, size):
    """What the process does: it saves until the rank that it belongs to ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the rank's to answer
    try:
        if size > 1:
            _answer(connection, _join_group, connection, rank, size)
        while True:
            message = connection.recv()
            _answer(connection, _save_there, *message)
    except EOFError:
        pass  # the rank has ended
    if dist.is_initialized():
        dist.destroy_process_group()


def _answer(connection, call, *args):
    try:
        reply = call(*args)
    except EOFError:
        raise
    except BaseException as error:  # whatever it is, the rank is to raise it
        reply = Failure(error)
    connection.send(reply)


def _join_group(connection, rank, size):
    store = None
    if rank == 0:
        store = dist.TCPStore("localhost", 0, size, is_master=True, wait_for_workers=False)
        connection.send(store.port)
    host, port = connection.recv()
    if store is None:
        store = dist.TCPStore(host, port, size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)


def _save_there(state, writer, planner, use_dist):
    from facula.distributed.checkpoint._steps import Ranks
    from facula.distributed.checkpoint.state_dict_saver import _save

    return _save(state, writer, Ranks(None, use_dist and dist.is_initialized(), 0), planner)
