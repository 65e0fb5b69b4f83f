"""start_processes() and what it returns."""

from __future__ import annotations

import dataclasses
import enum
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from string import Template

from facula.distributed.elastic.multiprocessing._output import LinePump, console_of
from facula.distributed.elastic.multiprocessing.errors import ProcessFailure, record

_STREAMS = ("stdout", "stderr")


class SignalException(Exception):
    """The launcher was sent a signal.

    Args:
        msg (str): the text.
        sigval (signal.Signals): which one.
    """

    def __init__(self, msg, sigval):
        super().__init__(msg)
        self.sigval = sigval


class Std(enum.IntFlag):
    """Streams of a process.

    Example:
        >>> Std.from_str("0:1,1:3")
        {0: <Std.OUT: 1>, 1: <Std.ALL: 3>}
    """

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = 3

    @classmethod
    def from_str(cls, vm):
        """Read "3" as a value for all ranks, and "0:1,1:2" as one for each."""
        if ":" not in vm:
            return cls._of(vm, vm)
        found = {}
        for pair in vm.split(","):
            rank, _, value = pair.partition(":")
            if not rank.strip().isdigit():
                raise ValueError(f"Std.from_str(): expected rank:number pairs; got {vm!r}")
            found[int(rank)] = cls._of(value, vm)
        return found

    @classmethod
    def _of(cls, text, whole):
        if text.strip() not in ("0", "1", "2", "3"):
            raise ValueError(f"Std.from_str(): expected numbers from 0 to 3; got {whole!r}")
        return cls(int(text))


def to_map(val_or_map, local_world_size):
    """A value for each rank, from one for all or from a dict that may leave ranks out.

    Example:
        >>> to_map(Std.OUT, 2)
        {0: <Std.OUT: 1>, 1: <Std.OUT: 1>}
    """
    if isinstance(val_or_map, Std):
        return dict.fromkeys(range(local_world_size), val_or_map)
    return {rank: val_or_map.get(rank, Std.NONE) for rank in range(local_world_size)}


@dataclasses.dataclass
class LogsDest:
    """Where the output of each rank goes: local rank -> path, "" for the console."""

    stdouts: dict = dataclasses.field(default_factory=dict)
    stderrs: dict = dataclasses.field(default_factory=dict)
    tee_stdouts: dict = dataclasses.field(default_factory=dict)
    tee_stderrs: dict = dataclasses.field(default_factory=dict)
    error_files: dict = dataclasses.field(default_factory=dict)


class LogsSpecs:
    """What is to be done with the output of ranks.

    Args:
        log_dir (str): the folder for files.
        redirects (Std or dict): streams that go to files only.
        tee (Std or dict): streams that go to files and, with prefixes, to the console.
        local_ranks_filter (set of int): the ranks that may write to the console; default all.
        duplicate_stdout_filters, duplicate_stderr_filters (list of str): words of the lines that
            are also written to one file for all ranks.
    """

    def __init__(
        self,
        log_dir=None,
        redirects=Std.NONE,
        tee=Std.NONE,
        local_ranks_filter=None,
        duplicate_stdout_filters=None,
        duplicate_stderr_filters=None,
    ):
        self._root = log_dir
        self._redirects, self._tee = redirects, tee
        self._local_ranks_filter = local_ranks_filter
        self._duplicate = {
            "stdout": list(duplicate_stdout_filters or []),
            "stderr": list(duplicate_stderr_filters or []),
        }

    def reify(self, envs):
        """The paths for ranks with these environments (dict of dict). Returns a LogsDest."""
        raise NotImplementedError(f"{type(self).__name__} does not define reify()")

    @property
    def root_log_dir(self):
        """The folder for files."""
        return self._root


class DefaultLogsSpecs(LogsSpecs):
    """A folder for each run, attempt and rank: RUN/attempt_0/1/stdout.log."""

    def _run_dir(self, run_id):
        if self._root is None:
            self._root = tempfile.mkdtemp(prefix="facula-elastic-")
            self._is_own = True
        os.makedirs(self._root, exist_ok=True)
        if not hasattr(self, "_of_run"):
            self._of_run = tempfile.mkdtemp(prefix=f"{run_id}_", dir=self._root)
        return self._of_run

    def remove_if_unused(self):
        """Remove the folder if nobody asked for one and no output went there."""
        streams = [self._redirects, self._tee]
        used = any(s != Std.NONE for m in streams for s in to_map(m, 1 << 10).values())
        if getattr(self, "_is_own", False) and not used and not self._local_ranks_filter:
            shutil.rmtree(self._root, ignore_errors=True)

    def reify(self, envs):
        """The paths for ranks with these environments."""
        first = next(iter(envs.values()), {})
        attempt = first.get("TORCHELASTIC_RESTART_COUNT", "0")
        folder = os.path.join(
            self._run_dir(first.get("TORCHELASTIC_RUN_ID", "none")), f"attempt_{attempt}"
        )
        size = len(envs)
        redirects, tee = to_map(self._redirects, size), to_map(self._tee, size)
        dest = LogsDest()
        for rank in range(size):
            of_rank = os.path.join(folder, str(rank))
            os.makedirs(of_rank, exist_ok=True)
            hidden = self._local_ranks_filter and rank not in self._local_ranks_filter
            for name, bit, paths, tees in (
                ("stdout", Std.OUT, dest.stdouts, dest.tee_stdouts),
                ("stderr", Std.ERR, dest.stderrs, dest.tee_stderrs),
            ):
                to_file = (redirects[rank] | tee[rank]) & bit
                paths[rank] = os.path.join(of_rank, f"{name}.log") if to_file or hidden else ""
                if tee[rank] & bit and not hidden:
                    tees[rank] = paths[rank]
            dest.error_files[rank] = os.path.join(of_rank, "error.json")
        return dest


@dataclasses.dataclass
class RunProcsResult:
    """How processes ended.

    Args:
        return_values (dict): what functions returned, by local rank.
        failures (dict): local rank -> ProcessFailure.
        stdouts, stderrs (dict): local rank -> path.
    """

    return_values: dict = dataclasses.field(default_factory=dict)
    failures: dict = dataclasses.field(default_factory=dict)
    stdouts: dict = dataclasses.field(default_factory=dict)
    stderrs: dict = dataclasses.field(default_factory=dict)

    def is_failed(self):
        """Whether one of them failed."""
        return bool(self.failures)


class PContext:
    """Processes that run together.

    Args:
        name (str): what they are called in messages.
        entrypoint (str or callable): a program, or a function.
        args (dict): local rank -> tuple of arguments.
        envs (dict): local rank -> variables of the environment.
        logs_specs (LogsSpecs): where output goes.
        log_line_prefixes (dict): local rank -> text before each line on the console.
    """

    def __init__(self, name, entrypoint, args, envs, logs_specs, log_line_prefixes=None):
        size = len(args)
        if set(args) != set(range(size)) or set(envs) != set(args):
            raise RuntimeError(
                f"start_processes(): expected arguments and environments for local ranks "
                f"0 to {size - 1}; got {sorted(args)} and {sorted(envs)}"
            )
        self.name, self.entrypoint, self.args, self.envs = name, entrypoint, args, envs
        self.nprocs = size
        self._logs_specs, self._prefixes = logs_specs, log_line_prefixes or {}
        self._dest = logs_specs.reify(envs)
        self.error_files = self._dest.error_files
        self.stdouts, self.stderrs = self._dest.stdouts, self._dest.stderrs
        self._pumps = []
        self._copies = {
            n: os.path.join(
                os.path.dirname(os.path.dirname(self.error_files[0])), f"filtered_{n}.log"
            )
            for n, words in logs_specs._duplicate.items()
            if words and self.error_files
        }

    def _outputs(self, rank):
        """What a process has for stdout and stderr: None, a path, or a pipe's end (int)."""
        found = []
        for name in _STREAMS:
            path = getattr(self._dest, f"{name}s").get(rank, "")
            tee = rank in getattr(self._dest, f"tee_{name}s")
            words = self._logs_specs._duplicate[name]
            to_console = tee or not path
            if not words and (path and not tee or not path and console_of(name).isatty()):
                found.append(path or None)
                continue
            read, write = os.pipe()
            prefix = self._prefixes.get(rank, f"[{self.name}{rank}]:") if tee else ""
            copies = [(self._copies[name], words)] if words else []
            console = console_of(name) if to_console else None
            self._pumps.append(LinePump(read, path, console, prefix, copies))
            found.append(write)
        return found

    def _environment(self, rank, outputs):
        env = {**os.environ, **self.envs[rank], "TORCHELASTIC_ERROR_FILE": self.error_files[rank]}
        if any(isinstance(o, int) for o in outputs):
            env.setdefault("PYTHONUNBUFFERED", "1")  # a pipe's lines would come in blocks
        return env

    def start(self):
        """Start all processes."""
        for rank in range(self.nprocs):
            outputs = self._outputs(rank)
            try:
                self._start_one(rank, outputs)
            except BaseException:
                self.close(signal.SIGKILL)
                raise
            finally:
                for end in outputs:
                    if isinstance(end, int):
                        os.close(end)

    def wait(self, timeout=-1, period=1):
        """Wait until all have ended or one has failed; in the latter case the others are ended.

        Args:
            timeout (float): seconds; 0 only asks, -1 waits without end.
            period (float): seconds between looks.

        Returns:
            RunProcsResult, or None if they still run
        """
        end = time.monotonic() + timeout
        while True:
            result = self._poll()
            if result is not None or timeout == 0:
                return result
            if 0 < timeout < time.monotonic() - end + timeout:
                return None
            time.sleep(min(period, 0.05))

    def _poll(self):
        codes = self._exit_codes()
        failed = {r: c for r, c in codes.items() if c not in (None, 0)}
        if failed:
            pids = self.pids()
            failures = {
                r: ProcessFailure(r, pids[r], c, self.error_files[r], self._last_lines(r))
                for r, c in failed.items()
            }
            self.close()
            return RunProcsResult({}, failures, self.stdouts, self.stderrs)
        if any(c is None for c in codes.values()):
            return None
        values = self._return_values()
        self.close()
        return RunProcsResult(values, {}, self.stdouts, self.stderrs)

    def _last_lines(self, rank, count=20):
        """The end of what a rank wrote to stderr, if that went to a file."""
        try:
            with open(self.stderrs.get(rank) or "", "rb") as file:
                return b"\n".join(file.read()[-8192:].splitlines()[-count:]).decode(
                    errors="replace"
                )
        except OSError:
            return ""

    def close(self, death_sig=None, timeout=30):
        """End all processes that still run, and those that they have started.

        Args:
            death_sig (signal.Signals): what they are sent first; default SIGTERM.
            timeout (float): seconds until they are killed.
        """
        death_sig = signal.SIGTERM if death_sig is None else death_sig
        running = [r for r, c in self._exit_codes().items() if c is None]
        for rank in running:
            self._send(rank, death_sig)
        end = time.monotonic() + timeout
        while time.monotonic() < end and any(c is None for c in self._exit_codes().values()):
            time.sleep(0.01)
        for rank in self.pids():
            self._send(rank, signal.SIGKILL)  # also what a rank that has ended left behind
        while any(c is None for c in self._exit_codes().values()):
            time.sleep(0.01)
        for pump in self._pumps:
            pump.join(2)

    def _send(self, rank, sig):
        try:
            os.killpg(self.pids()[rank], sig)  # each has a session of its own
        except (ProcessLookupError, PermissionError):
            pass

    def _return_values(self):
        return dict.fromkeys(range(self.nprocs))


def _die_with_parent():
    """A function for a new process: its own session, and a signal when the launcher is killed."""
    import ctypes

    libc = ctypes.CDLL(None)

    def prepare():
        os.setsid()
        libc.prctl(1, int(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG

    return prepare


class SubprocessContext(PContext):
    """Processes of a program."""

    def start(self):
        """Start all processes."""
        self.subprocess_handlers = {}
        self._prepare = _die_with_parent()
        super().start()

    def _start_one(self, rank, outputs):
        opened = [open(o, "ab") if isinstance(o, str) else o for o in outputs]
        try:
            self.subprocess_handlers[rank] = subprocess.Popen(
                [self.entrypoint, *map(str, self.args[rank])],
                stdout=opened[0],
                stderr=opened[1],
                env=self._environment(rank, outputs),
                preexec_fn=self._prepare,
            )
        finally:
            for file in opened:
                if hasattr(file, "close"):
                    file.close()

    def pids(self):
        """Local rank -> number of the process in the system."""
        return {r: p.pid for r, p in self.subprocess_handlers.items()}

    def _exit_codes(self):
        return {r: p.poll() for r, p in self.subprocess_handlers.items()}


def _call(fn, args, env, outputs, pipe):
    """What a process of a MultiprocessContext runs."""
    os.setsid()
    os.environ.update(env)
    for number, path in enumerate(outputs, 1):
        if path is not None:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(fd, number)
            os.close(fd)
    pipe.send(record(fn)(*args))
    pipe.close()


class MultiprocessContext(PContext):
    """Processes of a function."""

    def __init__(self, *args, start_method="spawn", **kwargs):
        super().__init__(*args, **kwargs)
        self.start_method = start_method
        self._processes, self._pipes, self._values = {}, {}, {}

    def _start_one(self, rank, outputs):
        context = multiprocessing.get_context(self.start_method)
        receive, send = context.Pipe(duplex=False)
        # A descriptor of this process is found under its number by a new one of the same machine.
        paths = [f"/proc/{os.getpid()}/fd/{o}" if isinstance(o, int) else o for o in outputs]
        env = {**self.envs[rank], "TORCHELASTIC_ERROR_FILE": self.error_files[rank]}
        process = context.Process(
            target=_call, args=(self.entrypoint, self.args[rank], env, paths, send), daemon=False
        )
        process.start()
        send.close()
        self._processes[rank], self._pipes[rank] = process, receive
        if any(isinstance(o, int) for o in outputs):
            self._wait_until_open(process)

    @staticmethod
    def _wait_until_open(process):
        """The new process opens the pipe by its number here, which must not be closed before."""
        end = time.monotonic() + 30
        while time.monotonic() < end and process.is_alive():
            try:
                if os.getsid(process.pid) == process.pid:
                    time.sleep(0.05)
                    return
            except ProcessLookupError:
                return
            time.sleep(0.01)

    def pids(self):
        """Local rank -> number of the process in the system."""
        return {r: p.pid for r, p in self._processes.items()}

    def _exit_codes(self):
        for rank, pipe in self._pipes.items():
            # A value that is larger than the pipe keeps its sender waiting until it is read.
            try:
                if rank not in self._values and pipe.poll():
                    self._values[rank] = pipe.recv()
            except (EOFError, OSError):
                pass
        return {r: p.exitcode for r, p in self._processes.items()}

    def _return_values(self):
        self._exit_codes()
        return {r: self._values.get(r) for r in range(self.nprocs)}


def start_processes(
    name,
    entrypoint,
    args,
    envs,
    logs_specs=None,
    log_line_prefixes=None,
    start_method="spawn",
    **options,
):
    """Start processes that run together.

    Args:
        name (str): what they are called in messages.
        entrypoint (str or callable): a program, or a function of a module.
        args (dict): local rank -> tuple of arguments.
        envs (dict): local rank -> variables of the environment.
        logs_specs (LogsSpecs): where output goes; default the console.
        log_line_prefixes (dict): local rank -> text before each line on the console.
        start_method (str): "spawn", "fork" or "forkserver", for a function.

    Returns:
        PContext: already started

    Raises:
        RuntimeError: the ranks of `args` and `envs` are not 0, 1, ...
    """
    kind = SubprocessContext if isinstance(entrypoint, str) else MultiprocessContext
    method = {} if isinstance(entrypoint, str) else {"start_method": start_method}
    specs = logs_specs or DefaultLogsSpecs()
    context = kind(name, entrypoint, args, envs, specs, log_line_prefixes, **method)
    context.start()
    return context


def line_prefixes(template, name, ranks):
    """The prefixes of local ranks 0, 1, ... with these global ranks.

    Args:
        template (str): with ${role_name}, ${local_rank}, ${rank} and ${hostname}; None for
            "[${role_name}${local_rank}]:".
        name (str): the role.
        ranks (list of int): global ranks.
    """
    import socket

    made = Template(template or "[${role_name}${local_rank}]:")
    return {
        i: made.safe_substitute(
            role_name=name, local_rank=i, rank=rank, hostname=socket.gethostname()
        )
        for i, rank in enumerate(ranks)
    }


def python_program():
    """The interpreter that ranks are started with: PYTHON_EXEC of the environment, or this one."""
    return os.environ.get("PYTHON_EXEC", sys.executable)
