"""elastic_launch(): a function or a program on many ranks, started again when one fails."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import threading
import time
import uuid
from datetime import timedelta

from facula.distributed.elastic.multiprocessing import (
    DefaultLogsSpecs,
    LogsSpecs,
    SignalException,
    start_processes,
)
from facula.distributed.elastic.multiprocessing.api import line_prefixes, python_program
from facula.distributed.elastic.multiprocessing.errors import ChildFailedError

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclasses.dataclass
class LaunchConfig:
    """How ranks are started.

    Args:
        min_nodes, max_nodes (int): how many machines take part.
        nproc_per_node (int): ranks on each.
        run_id (str): a name that the machines of a run have in common; default a random one.
        role (str): what the ranks are called.
        rdzv_endpoint (str): "host:port" of the store by which machines meet; default a free port of
            this one.
        rdzv_backend (str): "c10d", or "static" where `rdzv_configs` has the machine's "rank".
        rdzv_configs (dict): "timeout" in seconds, "is_host", "rank".
        max_restarts (int): how often all ranks are started again.
        monitor_interval (float): seconds between looks at the ranks.
        start_method (str): "spawn", "fork" or "forkserver", for functions.
        logs_specs (LogsSpecs): where output goes; default the console.
        log_line_prefix_template (str): what lines on the console begin with.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: LogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "c10d"
    rdzv_configs: dict = dataclasses.field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict = dataclasses.field(default_factory=dict)
    event_log_handler: str = "null"
    local_addr: str | None = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    shutdown_timeout: int = 30

    def __post_init__(self):
        if not 1 <= self.min_nodes <= self.max_nodes:
            raise ValueError(
                f"LaunchConfig(): expected 1 <= min_nodes <= max_nodes; got {self.min_nodes} and "
                f"{self.max_nodes}"
            )
        if self.nproc_per_node < 1:
            raise ValueError(
                f"LaunchConfig(): expected at least one rank per node; got {self.nproc_per_node}"
            )
        self.run_id = self.run_id or uuid.uuid4().hex
        self.logs_specs = self.logs_specs or DefaultLogsSpecs()


class elastic_launch:
    """A function or a program that runs on many ranks when it is called.

    Args:
        config (LaunchConfig): how.
        entrypoint (callable or str): a function of a module, or a program.

    Returns, when called with arguments: dict of global rank -> what the function returned.

    Raises, when called:
        ChildFailedError: ranks failed, and were started as often as `max_restarts` allows.
        SignalException: this process was sent a signal; the ranks are ended.
    """

    def __init__(self, config, entrypoint):
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args):
        return launch_agent(self._config, self._entrypoint, list(args))


def launch_agent(config, entrypoint, args):
    """Start the ranks of this machine, and wait for them; see elastic_launch."""
    entrypoint = entrypoint or python_program()
    try:
        with _signals(config.signals_to_handle), _Meeting(config) as meeting:
            for attempt in range(config.max_restarts + 1):
                result = _run_attempt(config, entrypoint, args, meeting, attempt)
                if result is not None:
                    return result
        raise AssertionError("the last attempt returns or raises")
    finally:
        if isinstance(config.logs_specs, DefaultLogsSpecs):
            config.logs_specs.remove_if_unused()


def _run_attempt(config, entrypoint, args, meeting, attempt):
    """What the ranks of this machine return; None if all are to be started again."""
    node, nodes = meeting.join(attempt)
    first = node * config.nproc_per_node
    ranks = range(first, first + config.nproc_per_node)
    context = start_processes(
        config.role,
        entrypoint,
        {i: tuple(args) for i in range(config.nproc_per_node)},
        {i: _environment(config, meeting, attempt, node, nodes, i) for i in range(len(ranks))},
        config.logs_specs,
        line_prefixes(config.log_line_prefix_template, config.role, ranks),
        config.start_method,
    )
    try:
        result = _wait(config, context, meeting, attempt)
    except BaseException as error:
        sig = error.sigval if isinstance(error, SignalException) else signal.SIGTERM
        context.close(sig, config.shutdown_timeout)
        raise
    last = attempt == config.max_restarts
    if result is None:  # a rank of another machine failed
        context.close(signal.SIGTERM, config.shutdown_timeout)
        if last:
            raise RuntimeError(f"{entrypoint}: ranks of another machine failed: {meeting.reason}")
        return None
    if not result.is_failed():
        meeting.leave(attempt, nodes)
        return {first + i: value for i, value in result.return_values.items()}
    error = ChildFailedError(
        _name_of(entrypoint, args), {first + i: f for i, f in result.failures.items()}
    )
    meeting.report_failure(attempt, f"ranks {sorted(error.failures)} on {socket.gethostname()}")
    if last:
        raise error
    return None


def _wait(config, context, meeting, attempt):
    looked = time.monotonic()
    while True:
        result = context.wait(timeout=0)
        if result is not None:
            return result
        if time.monotonic() - looked > max(config.monitor_interval, 0.1):
            looked = time.monotonic()
            if meeting.has_failed(attempt):
                return None
        time.sleep(min(config.monitor_interval, 0.05))


def _name_of(entrypoint, args):
    if not isinstance(entrypoint, str):
        return getattr(entrypoint, "__qualname__", str(entrypoint))
    programs = [str(a) for a in args if not str(a).startswith("-")]
    return programs[0] if programs else entrypoint


def _environment(config, meeting, attempt, node, nodes, local_rank):
    size = config.nproc_per_node
    env = {
        "LOCAL_RANK": local_rank,
        "RANK": node * size + local_rank,
        "GROUP_RANK": node,
        "ROLE_RANK": node * size + local_rank,
        "ROLE_NAME": config.role,
        "LOCAL_WORLD_SIZE": size,
        "WORLD_SIZE": nodes * size,
        "GROUP_WORLD_SIZE": nodes,
        "ROLE_WORLD_SIZE": nodes * size,
        "MASTER_ADDR": meeting.host,
        "MASTER_PORT": meeting.port,
        "TORCHELASTIC_RESTART_COUNT": attempt,
        "TORCHELASTIC_MAX_RESTARTS": config.max_restarts,
        "TORCHELASTIC_RUN_ID": config.run_id,
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    if size > 1 and "OMP_NUM_THREADS" not in os.environ:
        env["OMP_NUM_THREADS"] = 1  # ranks that each take all cores would hinder each other
    return {name: str(value) for name, value in env.items()}


class _Meeting:
    """The store by which the launchers of all machines meet, and which their ranks use, too."""

    def __init__(self, config):
        from facula.distributed import PrefixStore, TCPStore

        self._config, self.reason = config, ""
        host, _, port = config.rdzv_endpoint.rpartition(":")
        self.host, port = host.strip("[]") or "localhost", int(port or 0)
        timeout = timedelta(seconds=int(config.rdzv_configs.get("timeout", 900)))
        if config.max_nodes == 1 and not config.rdzv_endpoint:
            self._store = TCPStore("localhost", 0, is_master=True, timeout=timeout)
        else:
            self._store = self._open(self.host, port, timeout)
        self.port = self._store.port
        self._keys = PrefixStore(f"launcher/{config.run_id}", self._store)

    def _open(self, host, port, timeout):
        from facula.distributed import DistNetworkError, TCPStore

        given = self._config.rdzv_configs
        if self._config.rdzv_backend == "static":
            is_host = int(given.get("rank", 0)) == 0
        elif "is_host" in given:
            is_host = str(given["is_host"]).lower() in ("1", "true", "yes")
        else:
            is_host = None
        if is_host is None and _is_this_machine(host):
            # Several launchers of one machine: the first has the server.
            try:
                return TCPStore(host, port, is_master=True, timeout=timeout)
            except DistNetworkError:
                is_host = False
        return TCPStore(host, port, is_master=bool(is_host), timeout=timeout)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        del self._keys, self._store

    def join(self, attempt):
        """(number of this machine, number of machines) for an attempt."""
        least, most = self._config.min_nodes, self._config.max_nodes
        if most == 1:
            return 0, 1
        count = self._keys.add(f"{attempt}/nodes", 1)
        if self._config.rdzv_backend == "static":
            self._wait_for(attempt, most)
            return int(self._config.rdzv_configs.get("rank", 0)), most
        if count == 1:
            self._keys.set(f"{attempt}/size", str(self._wait_for_more(attempt, least, most)))
        nodes = int(self._keys.get(f"{attempt}/size"))
        if count > nodes:
            raise RuntimeError(f"this machine came when the {nodes} machines of the run had begun")
        return count - 1, nodes

    def _wait_for(self, attempt, nodes):
        end = time.monotonic() + self._store.timeout.total_seconds()
        while (here := self._keys.add(f"{attempt}/nodes", 0)) < nodes:
            if time.monotonic() > end:
                raise RuntimeError(f"expected {nodes} machines; {here} came")
            time.sleep(0.02)

    def _wait_for_more(self, attempt, least, most):
        """The number of machines once all are there, or enough and no other for a while."""
        self._wait_for(attempt, least)
        last_call = float(self._config.rdzv_configs.get("last_call_timeout", 30))
        end = time.monotonic() + last_call
        while (here := self._keys.add(f"{attempt}/nodes", 0)) < most and time.monotonic() < end:
            time.sleep(0.02)
        return min(here, most)

    def report_failure(self, attempt, text):
        """Have the other machines know that ranks of this one failed."""
        self._keys.set(f"{attempt}/failed", text)

    def has_failed(self, attempt):
        """Whether ranks of another machine failed."""
        if self._config.max_nodes == 1 or not self._keys.check([f"{attempt}/failed"]):
            return False
        self.reason = self._keys.get(f"{attempt}/failed").decode()
        return True

    def leave(self, attempt, nodes):
        """Wait until all machines are done: one of them has the server."""
        if nodes == 1:
            return
        from facula.distributed import DistError

        try:
            self._keys.barrier(f"{attempt}/end", nodes)
        except DistError:
            return  # the server's machine has gone first


def _is_this_machine(host):
    if host in ("localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()):
        return True
    try:
        addresses = {a[4][0] for a in socket.getaddrinfo(host, None)}
        own = {a[4][0] for a in socket.getaddrinfo(socket.gethostname(), None)}
    except OSError:
        return False
    return bool(addresses & own)


class _signals:
    """A scope in which signals to this process are raised as SignalExceptions."""

    def __init__(self, names):
        self._names = [n.strip() for n in names.split(",") if n.strip()]
        unknown = [n for n in self._names if not hasattr(signal, n)]
        if unknown:
            raise ValueError(f"expected names of signals; got {', '.join(unknown)}")

    def __enter__(self):
        self._before = {}
        if threading.current_thread() is not threading.main_thread():
            return
        for name in self._names:
            number = getattr(signal, name)
            self._before[number] = signal.signal(number, self._raise)

    @staticmethod
    def _raise(number, frame):
        sig = signal.Signals(number)
        raise SignalException(f"process {os.getpid()} got signal {sig.name}", sig)

    def __exit__(self, *error):
        for number, handler in self._before.items():
            signal.signal(number, handler)
