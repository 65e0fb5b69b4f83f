"""spawn(): one function in several processes, and what went wrong in the first that failed."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"
_PARENT_DEATH_SIGNAL = signal.SIGINT


class ProcessException(Exception):
    """A process of ProcessContext failed.

    Args:
        msg (str): the text.
        error_index (int): which one.
        pid (int): its number in the system.
    """

    __slots__ = ("error_index", "error_pid")

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = self.error_pid = pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process failed with an exception of Python, whose traceback is the text."""

    def __init__(self, msg, error_index, error_pid):
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """A process was killed, or ended with a status that is not 0."""

    __slots__ = ("exit_code",)

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self):
        kept = (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)
        return type(self), kept


def _wrap(fn, i, args, error_file):
    """What a process runs: the function, and a file for its traceback."""
    from facula.multiprocessing import _prctl_pr_set_pdeathsig

    _prctl_pr_set_pdeathsig(_PARENT_DEATH_SIGNAL)
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted, too, and says so
    except Exception:
        import traceback

        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes that start_processes() started.

    Args:
        processes (list): the processes.
        error_files (list of str): where each writes its traceback.
    """

    def __init__(self, processes, error_files):
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self):
        """The numbers of the processes in the system."""
        return [int(p.pid) for p in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Wait until a process ends.

        Args:
            timeout (float): seconds at most; for ever where None.
            grace_period (float): seconds that the others have to end by themselves after one
                failed; then they are asked to end, and 30 seconds later killed.

        Returns:
            bool: whether all have ended.

        Raises:
            ProcessRaisedException: one of them raised an exception; the others are ended.
            ProcessExitedException: one of them was killed or left with a status.
        """
        if not self.sentinels:
            return True
        ended = multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout)
        failed = None
        for sentinel in ended:
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0 and failed is None:
                failed = index
        if failed is None:
            return not self.sentinels
        self._end_others(grace_period)
        raise self._exception(failed)

    def _end_others(self, grace_period):
        if grace_period:
            limit = time.monotonic() + grace_period
            for process in self.processes:
                process.join(max(0, limit - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        limit = time.monotonic() + 30
        for process in self.processes:
            process.join(max(0, limit - time.monotonic()))
            if process.is_alive():
                process.kill()
            process.join()

    def _exception(self, index):
        process, path = self.processes[index], self.error_files[index]
        code = process.exitcode
        if os.path.exists(path) and os.path.getsize(path):
            with open(path, "rb") as file:
                text = pickle.load(file)
            said = f"\n\n-- Process {index} terminated with the following error:\n{text}"
            return ProcessRaisedException(said, index, process.pid)
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            said = f"process {index} terminated with signal {name}"
            return ProcessExitedException(said, index, process.pid, code, name)
        said = f"process {index} terminated with exit code {code}"
        return ProcessExitedException(said, index, process.pid, code)

    def __del__(self):
        for path in self.error_files:
            try:
                os.unlink(path)
            except OSError:
                continue


class SpawnContext(ProcessContext):
    """What spawn(join=False) returns."""


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run `fn(i, *args)` in `nprocs` processes, i from 0 on.

    Args:
        fn (callable): of a module, as it is pickled.
        args (tuple): the other arguments; tensors are shared.
        nprocs (int): how many processes.
        join (bool): wait until all have ended.
        daemon (bool): end them with this process.
        start_method (str): "spawn", "fork" or "forkserver".

    Returns:
        None, or a ProcessContext where `join` is false.

    Raises:
        ProcessRaisedException, ProcessExitedException: the first process that failed.
    """
    import facula.multiprocessing  # noqa: F401  (so that tensors in `args` are shared)

    context = multiprocessing.get_context(start_method)
    processes, error_files = [], []
    for i in range(nprocs):
        # The file must have a name: a process that was killed writes nothing to it.
        with tempfile.NamedTemporaryFile(prefix="facula-errors-", delete=False) as file:
            error_files.append(file.name)
        process = context.Process(target=_wrap, args=(fn, i, args, file.name), daemon=daemon)
        process.start()
        processes.append(process)
    started = ProcessContext(processes, error_files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run `fn(i, *args)` in `nprocs` new processes; see start_processes().

    Example:
        >>> facula.multiprocessing.spawn(print, args=("hello",), nprocs=0)
    """
    if start_method != "spawn":
        import warnings

        warnings.warn(
            "spawn(): the start method is 'spawn' here; start_processes() takes others, "
            f"got {start_method!r}",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
