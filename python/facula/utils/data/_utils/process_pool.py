"""Workers that are processes, each with a pipe for its tasks and one for its answers.

No lock is shared between processes, so one that is killed holds up nobody; the end of its pipe
tells the parent at once. A third pipe takes what the worker says of itself when it is stuck or
dies: the tracebacks of its threads, written by `faulthandler`.
"""

from __future__ import annotations

import contextlib
import io
import os
import queue
import signal
import threading
import time
from multiprocessing import connection
from multiprocessing.reduction import ForkingPickler

import facula
from facula.multiprocessing.reductions import reduce_tensor
from facula.utils.data._utils.worker import MP_STATUS_CHECK_INTERVAL, Work, set_worker_info

_DUMP_SIGNAL = signal.SIGRTMAX  # has a worker write where it is
_PIPE_BYTES = 1 << 20
_SMALL = 4096  # bytes of tensors that go with the message itself


# --- answers


def _rebuild_small(data, dtype, size):
    return facula.frombuffer(bytearray(data), dtype=dtype).view(size)


def _reduce_tensor(tensor):
    """Small tensors by value: a worker gives its batches away, so nobody sees that."""
    nbytes = tensor.numel() * tensor.element_size()
    plain = tensor.layout is facula.strided and tensor.device.type == "cpu"
    if not plain or tensor.requires_grad or tensor.is_shared() or not 0 < nbytes <= _SMALL:
        return reduce_tensor(tensor)
    if tensor.is_conj() or tensor.is_neg():
        return reduce_tensor(tensor)
    tensor = tensor.contiguous()
    begin = tensor.storage_offset() * tensor.element_size()
    data = bytes(memoryview(tensor.untyped_storage())[begin : begin + nbytes])
    return _rebuild_small, (data, tensor.dtype, tuple(tensor.size()))


def _dumps(answer):
    buffer = io.BytesIO()
    pickler = ForkingPickler(buffer, -1)
    pickler.dispatch_table = {**pickler.dispatch_table, facula.Tensor: _reduce_tensor}
    pickler.dump(answer)
    return buffer.getbuffer()


# --- in the worker


class _Tasks:
    """The tasks of a worker, read by a thread, so that the parent never waits to send one."""

    def __init__(self, reader, parent):
        self.reader, self.parent = reader, parent
        self.queue = queue.SimpleQueue()
        self.epoch = 0
        threading.Thread(target=self._read, name="DataLoader tasks", daemon=True).start()

    def _read(self):
        try:
            while True:
                while not self.reader.poll(MP_STATUS_CHECK_INTERVAL):
                    if os.getppid() != self.parent:
                        raise EOFError
                task = ForkingPickler.loads(self.reader.recv_bytes())
                if isinstance(task, int):
                    self.epoch = task
                if task is None:
                    self.epoch = -1
                self.queue.put(task)
        except (EOFError, OSError):
            os._exit(1)  # the parent is gone, and nobody waits for what is being done

    def newest(self):
        return self.epoch


def _explain_death(fd):
    """Have this process write tracebacks to a pipe when it dies of a signal, or is asked."""
    import faulthandler

    faulthandler.enable(fd)
    faulthandler.register(_DUMP_SIGNAL, fd)


def run_worker(settings, tasks, answers, dumps, parent):
    """The main function of a worker process."""
    import gc

    from facula.utils.data._utils.seeds import ChangedStates, seed_worker

    _explain_death(dumps.fileno())
    facula._C._keep_shared_segments(True)
    gc.freeze()  # what was there before the fork stays on pages that the parent shares
    facula.set_num_threads(1)
    seed_worker(settings.base_seed, settings.worker_id)
    set_worker_info(settings.info(), in_process=True)
    inbox = _Tasks(tasks, parent)

    def give(answer):
        answers.send_bytes(_dumps(answer))

    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):  # the parent says what happened
        Work(settings, inbox.queue.get, inbox.newest, give, ChangedStates()).run()


# --- in the parent


def _wide(end):
    """Let a pipe hold more than a page or two, where the system allows."""
    import fcntl

    with contextlib.suppress(OSError):
        fcntl.fcntl(end.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return end


class _Worker:
    """A process with the parent's ends of its pipes."""

    def __init__(self, context, settings):
        theirs, self.tasks = context.Pipe(duplex=False)
        self.answers, results = context.Pipe(duplex=False)
        self.dumps, dumps = context.Pipe(duplex=False)
        _wide(self.answers)
        self.process = context.Process(
            target=run_worker,
            args=(settings, theirs, results, dumps, os.getpid()),
            name=f"DataLoader worker {settings.worker_id}",
            daemon=True,
        )
        try:
            self.process.start()
        finally:
            for end in (theirs, results, dumps):
                end.close()

    def dumped(self, wait):
        """What the worker wrote of itself, waiting so many seconds for the first of it."""
        data = b""
        while self.dumps.poll(wait):
            part = os.read(self.dumps.fileno(), 1 << 16)
            if not part:
                break
            data, wait = data + part, 0.1
        return data.decode(errors="replace")


_pools = 0


def _count_pools(change):
    """While there are pools, the memory of one batch serves for the next."""
    global _pools
    _pools += change
    facula._C._keep_shared_segments(_pools > 0)


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


# A process that was killed closes its files a moment before it can be waited for.
_SECONDS_OF_DYING = 0.5


class ProcessPool:
    """Workers of a loader as processes.

    Args:
        settings (list of Settings): one for each worker.
        context: of multiprocessing.
    """

    def __init__(self, settings, context):
        _count_pools(1)
        self.members = []
        self.patience = MP_STATUS_CHECK_INTERVAL  # seconds that workers have to stop
        try:
            for s in settings:
                self.members.append(_Worker(context, s))
        except BaseException:
            self.close()
            raise
        self.workers = [m.process for m in self.members]
        self._by_end = {m.answers: i for i, m in enumerate(self.members)}
        self._ready = []

    def begin_epoch(self, epoch):
        """Tell the workers that an epoch begins; tasks of older ones are dropped."""
        for worker_id in range(len(self.members)):
            self.send(worker_id, epoch)

    def send(self, worker_id, task):
        """Give a worker a task."""
        try:
            self.members[worker_id].tasks.send_bytes(ForkingPickler.dumps(task))
        except BrokenPipeError:
            raise self._died(worker_id) from None

    def receive(self, timeout):
        """The next answer: (worker, answer); None after `timeout` seconds (None: for ever).

        Raises:
            RuntimeError: a worker died.
        """
        if not self._ready:
            self._ready = connection.wait(list(self._by_end), timeout)
        if not self._ready:
            return None
        end = self._ready.pop()
        worker_id = self._by_end[end]
        try:
            message = end.recv_bytes()
        except (EOFError, OSError):
            raise self._died(worker_id) from None
        try:
            return worker_id, ForkingPickler.loads(message)
        except RuntimeError:
            # The memory of a batch goes with a worker that dies before it is opened here.
            process = self.members[worker_id].process
            process.join(_SECONDS_OF_DYING)
            if process.is_alive():
                raise
            raise self._died(worker_id) from None

    def _died(self, worker_id):
        member = self.members[worker_id]
        member.process.join(MP_STATUS_CHECK_INTERVAL)
        code = member.process.exitcode
        if code is None:
            how = "it closed its pipe"
        elif code < 0:
            how = f"it was killed by signal {_signal_name(-code)}"
        else:
            how = f"its exit status was {code}"
        said = member.dumped(0)
        return RuntimeError(
            f"DataLoader worker (pid(s) {member.process.pid}) exited unexpectedly: worker "
            f"{worker_id}, {how}" + (f"\n{said}" if said else "")
        )

    def describe(self, worker_id):
        """Which process a worker is, and where it is now."""
        member = self.members[worker_id]
        with contextlib.suppress(OSError):
            os.kill(member.process.pid, _DUMP_SIGNAL)
        said = member.dumped(1.0)
        self.patience = 0.1  # what is stuck is not waited for
        return f"worker {worker_id} (pid {member.process.pid}) is at\n{said}"

    def close(self):
        """End the workers: they stop after what they do now, or are made to."""
        for m in self.members:
            m.answers.close()
            with contextlib.suppress(OSError):
                m.tasks.send_bytes(ForkingPickler.dumps(None))
        for end, seconds in ((None, self.patience), ("terminate", 1), ("kill", 1)):
            limit = time.monotonic() + seconds
            running = [m.process for m in self.members if m.process.is_alive()]
            for process in running:
                if end:
                    getattr(process, end)()
            for process in running:
                process.join(max(0, limit - time.monotonic()))
        for m in self.members:
            m.tasks.close()
            m.dumps.close()
        self.members = []
        _count_pools(-1)
