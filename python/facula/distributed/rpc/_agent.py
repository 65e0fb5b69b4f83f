"""A worker's connections with all others, calls that it waits for, and threads that run calls."""

from __future__ import annotations

import collections
import heapq
import hmac
import secrets
import socket
import sys
import threading
import time
import traceback
from enum import IntEnum
from typing import NamedTuple

from facula.distributed.rpc import _wire
from facula.futures import Future


class WorkerInfo:
    """A worker: its name, and its number among all.

    Example:
        >>> facula.distributed.rpc.WorkerInfo("trainer", 1)
        WorkerInfo(id=1, name=trainer)
    """

    __slots__ = ("id", "name")

    def __init__(self, name, id):
        self.name, self.id = name, id

    def __repr__(self):
        return f"WorkerInfo(id={self.id}, name={self.name})"

    def __eq__(self, other):
        return isinstance(other, WorkerInfo) and (self.name, self.id) == (other.name, other.id)

    def __hash__(self):
        return hash((self.name, self.id))

    def __reduce__(self):
        return WorkerInfo, (self.name, self.id)


class Kind(IntEnum):
    """Kinds of messages."""

    CALL = 1  # runs a user's function
    ASK = 2  # runs a function of rpc's own, which must not wait for a free thread
    TELL = 3  # likewise, in order, without an answer
    RESULT = 4
    ERROR = 5
    BYE = 6


class _Pending(NamedTuple):
    future: Future
    worker: int
    read: object  # makes the value of a Message


class _Threads:
    """Threads that run what is given to them, as many as are needed up to a number."""

    def __init__(self, most, name):
        self.most, self.name = most, name
        self.changed = threading.Condition()
        self.tasks, self.idle, self.count, self.busy = collections.deque(), 0, 0, 0

    def run(self, task):
        """Run a function in one of the threads, as soon as one is free."""
        with self.changed:
            self.tasks.append(task)
            if self.idle >= len(self.tasks):
                self.changed.notify()
            elif self.count < self.most:
                self.count += 1
                name = f"{self.name}-{self.count}"
                threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self):
        while True:
            with self.changed:
                self.idle += 1
                self.changed.wait_for(lambda: self.tasks)
                self.idle -= 1
                task = self.tasks.popleft()
                if task is None:
                    self.tasks.appendleft(None)  # for the next thread
                    self.changed.notify()
                    return
                self.busy += 1
            try:
                task()
            finally:
                task = None
                with self.changed:
                    self.busy -= 1

    def end(self):
        """Let the threads end when they have done what there is."""
        with self.changed:
            self.tasks.append(None)
            self.changed.notify_all()


class _Timer:
    """Calls functions at times."""

    def __init__(self):
        self.changed = threading.Condition()
        self.heap, self.number, self.ended = [], 0, False
        threading.Thread(target=self._work, name="rpc-timer", daemon=True).start()

    def add(self, seconds, function):
        """Call a function after some time."""
        with self.changed:
            self.number += 1
            heapq.heappush(self.heap, (time.monotonic() + seconds, self.number, function))
            self.changed.notify()

    def _work(self):
        while True:
            with self.changed:
                while not self.heap or self.heap[0][0] > time.monotonic():
                    if self.ended:
                        return
                    left = self.heap[0][0] - time.monotonic() if self.heap else None
                    self.changed.wait(None if left is None else max(0.0, left))
                _, _, function = heapq.heappop(self.heap)
            function()

    def end(self):
        """Call nothing more."""
        with self.changed:
            self.heap.clear()
            self.ended = True
            self.changed.notify()


class _Peer:
    """The connection with another worker."""

    def __init__(self, info, connection):
        self.info, self.socket = info, connection
        self.lock = threading.Lock()
        self.said_bye = False
        self.lost = None  # why nothing can be sent any more


_TOKEN = 32


def _configure(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # A machine that is gone is noticed within two seconds.
    for option, value in (("TCP_KEEPIDLE", 1), ("TCP_KEEPINTVL", 1), ("TCP_KEEPCNT", 1)):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class Agent:
    """Calls other workers, and is called by them.

    Args:
        name (str): of this worker.
        rank (int): of this worker.
        world_size (int): how many there are.
        store (Store): one that all share.
        host (str): the address by which others reach this one.
        options (TensorPipeRpcBackendOptions): threads and timeout.
    """

    def __init__(self, name, rank, world_size, store, host, options):
        self.info = WorkerInfo(name, rank)
        self.timeout = options.rpc_timeout
        self.lock = threading.Lock()
        self.pending, self.next_number, self.peers = {}, 0, {}
        self.quiet = threading.Condition(self.lock)
        self.closing = False
        self.on_call = self.on_ask = self.on_tell = None
        self.users_threads = _Threads(options.num_worker_threads, "rpc")
        self.own_threads = _Threads(sys.maxsize, "rpc-own")
        self.timer = _Timer()
        self.store, self.host, self.world_size = store, host, world_size
        self.workers = {}

    def connect(self):
        """Meet all other workers.

        Raises:
            RuntimeError: two have the same name, or one does not come.
        """
        rank, size, store = self.info.id, self.world_size, self.store
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.bind((self.host, 0))
            listener.listen(size)
            # Whoever can reach the port could have functions run: the store has a secret for it.
            if rank == 0:
                store.set("token", secrets.token_bytes(_TOKEN))
            token = bytes(store.get("token"))
            address = f"{self.info.name}|{listener.getsockname()[1]}|{self.host}"
            store.set(f"worker{rank}", address)
            addresses = {}
            for other in range(size):
                text = bytes(store.get(f"worker{other}")).decode()
                name, port, host = text.split("|", 2)
                if name in (w.name for w in self.workers.values()):
                    raise RuntimeError(
                        f"init_rpc(): expected names that differ; {name} is that of two workers"
                    )
                self.workers[other] = WorkerInfo(name, other)
                addresses[other] = host, int(port)
            for other in range(rank):
                connection = socket.create_connection(addresses[other], timeout=30)
                connection.sendall(token + rank.to_bytes(4, "little"))
                self._add_peer(other, connection)
            listener.settimeout(30)
            while len(self.peers) < size - 1:
                self._accept(listener, token)
        for peer in self.peers.values():
            name = f"rpc-from-{peer.info.name}"
            threading.Thread(target=self._read, args=(peer,), name=name, daemon=True).start()

    def _accept(self, listener, token):
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            missing = [w.name for i, w in self.workers.items() if i > self.info.id]
            missing = [n for n in missing if n not in (p.info.name for p in self.peers.values())]
            raise RuntimeError(f"init_rpc(): {', '.join(missing)} did not connect") from None
        connection.settimeout(30)
        try:
            greeting = bytes(_wire._read(connection, _TOKEN + 4))
        except (OSError, EOFError):
            return connection.close()
        other = int.from_bytes(greeting[_TOKEN:], "little")
        if not hmac.compare_digest(greeting[:_TOKEN], token) or other not in self.workers:
            return connection.close()
        self._add_peer(other, connection)
        return None

    def _add_peer(self, other, connection):
        connection.settimeout(None)
        _configure(connection)
        self.peers[other] = _Peer(self.workers[other], connection)

    def find(self, to):
        """The WorkerInfo of a name, number or WorkerInfo.

        Raises:
            RuntimeError: there is no such worker.
        """
        if isinstance(to, WorkerInfo):
            to = to.id
        for info in self.workers.values():
            if to in (info.id, info.name):
                return info
        names = ", ".join(w.name for w in self.workers.values())
        raise RuntimeError(f"rpc: expected one of the workers {names}; got {to!r}")

    # Calls of others ---------------------------------------------------------------------------

    def call(self, worker, kind, packed, read, timeout=None):
        """Send a call.

        Args:
            worker (int): which worker.
            kind (Kind): CALL or ASK.
            packed (tuple): pickle and buffers.
            read (callable): makes the value of the answer.
            timeout (float): seconds, 0 for any time, None for the default.

        Returns:
            Future: of what the other one returns
        """
        future = Future()
        with self.lock:
            self.next_number += 1
            number = self.next_number
            self.pending[number] = _Pending(future, worker, read)
        timeout = self.timeout if timeout is None or timeout < 0 else timeout
        if timeout > 0:
            self.timer.add(timeout, lambda: self._give_up(number, timeout))
        try:
            self.send(worker, _wire.Message(int(kind), number, *packed))
        except (OSError, RuntimeError) as error:
            self._fail(number, error if isinstance(error, RuntimeError) else None)
        return future

    def tell(self, worker, packed):
        """Send something that is not answered; nothing if the worker is gone."""
        try:
            self.send(worker, _wire.Message(int(Kind.TELL), 0, *packed))
        except (OSError, RuntimeError):
            pass

    def send(self, worker, message):
        """Send a message to a worker, which may be this one."""
        if worker == self.info.id:
            buffers = [bytearray(b) for b in message.buffers]
            return self._take(worker, message._replace(buffers=buffers))
        peer = self.peers[worker]
        if peer.lost is not None:
            raise RuntimeError(peer.lost)
        with peer.lock:
            try:
                _wire.send(peer.socket, message)
            except OSError as error:
                self._lose(peer, error)
                raise RuntimeError(peer.lost) from error
        return None

    def _take_pending(self, number):
        with self.lock:
            found = self.pending.pop(number, None)
            self.quiet.notify_all()
        return found

    def _give_up(self, number, timeout):
        found = self._take_pending(number)
        if found is not None:
            found.future.set_exception(
                RuntimeError(
                    f"rpc: expected an answer of {self.workers[found.worker].name} within "
                    f"{timeout:g} s (timeout); got none"
                )
            )

    def _fail(self, number, error):
        found = self._take_pending(number)
        if found is not None:
            lost = RuntimeError(f"rpc: {self.workers[found.worker].name} cannot be reached")
            found.future.set_exception(error or lost)

    # Messages of others ------------------------------------------------------------------------

    def _read(self, peer):
        try:
            while True:
                message = _wire.receive(peer.socket)
                if message.kind == Kind.BYE:
                    peer.said_bye = True
                    continue
                self._take(peer.info.id, message)
        except (OSError, EOFError) as error:
            self._lose(peer, error)

    def _lose(self, peer, error):
        what = "has left" if peer.said_bye else "is lost: its process has ended"
        if isinstance(error, OSError) and not isinstance(error, ConnectionError):
            what = f"is lost: {error}"
        peer.lost = f"rpc: worker {peer.info.name} (rank {peer.info.id}) {what}"
        with self.lock:
            numbers = [n for n, p in self.pending.items() if p.worker == peer.info.id]
        for number in numbers:
            self._fail(number, RuntimeError(peer.lost))

    def _take(self, worker, message):
        kind = message.kind
        if kind == Kind.TELL:
            self.on_tell(worker, message)
        elif kind == Kind.ASK:
            self.own_threads.run(lambda: self._serve(self.on_ask, worker, message))
        elif kind == Kind.CALL:
            self.users_threads.run(lambda: self._serve(self.on_call, worker, message))
        else:
            found = self._take_pending(message.number)
            # Reading a value may run a callback of the user, which may wait for another message.
            if found is not None:
                self.own_threads.run(lambda: self._finish(found, message))

    def _finish(self, found, message):
        try:
            value = found.read(message)
        except BaseException as error:
            found.future.set_exception(error)
            return
        found.future.set_result(value)

    def _serve(self, handler, worker, message):
        """Run a call, and answer when its value is there."""
        try:
            handler(
                worker, message, lambda kind, packed: self._answer(worker, message, kind, packed)
            )
        except BaseException:
            traceback.print_exc()

    def _answer(self, worker, message, kind, packed):
        try:
            self.send(worker, _wire.Message(int(kind), message.number, *packed))
        except (OSError, RuntimeError):
            pass  # whoever asked is gone

    # The end -----------------------------------------------------------------------------------

    def wait_until_quiet(self, timeout):
        """Wait until all calls that were begun here have ended."""
        with self.lock:
            return self.quiet.wait_for(lambda: not self.pending, timeout or None)

    def close(self):
        """End all connections."""
        self.closing = True
        for peer in self.peers.values():
            try:
                with peer.lock:
                    _wire.send(peer.socket, _wire.Message(int(Kind.BYE), 0, b"", []))
                    peer.socket.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        # Bytes that nobody has read would break the connection before the other one is done.
        end = time.monotonic() + 2
        for peer in self.peers.values():
            while peer.lost is None and time.monotonic() < end:
                time.sleep(0.001)
            peer.socket.close()
        self.timer.end()
        self.users_threads.end()
        self.own_threads.end()
