"""How a rank tells its error to the launcher, and how the launcher tells the user."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import signal
import socket
import time
import traceback

__all__ = ["ChildFailedError", "ProcessFailure", "record"]


@dataclasses.dataclass
class ProcessFailure:
    """A rank that failed.

    Args:
        local_rank (int): its number on this machine.
        pid (int): its number in the system.
        exitcode (int): its status, negative for a signal.
        error_file (str): where `record` writes the error.
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    message: str = ""
    timestamp: int = 0
    error_file_data: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        found = _read_error_file(self.error_file)
        self.timestamp = self.timestamp or int(time.time())
        if found is not None:
            self.error_file_data = found
            self.message = found["message"]
            stamp = found.get("extraInfo", {}).get("timestamp")
            self.timestamp = int(stamp) if str(stamp).isdigit() else self.timestamp
        else:
            self.error_file = "<N/A>"
        if not self.message and self.exitcode < 0:
            self.message = f"Signal {-self.exitcode} ({self.signal_name()}) received"

    def signal_name(self):
        """The name of the signal that ended it; "<N/A>" if none did."""
        try:
            return signal.Signals(-self.exitcode).name if self.exitcode < 0 else "<N/A>"
        except ValueError:
            return "<N/A>"

    def timestamp_isoformat(self):
        """When it failed, in UTC."""
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self.timestamp))


def _read_error_file(path):
    """What `record` has written: a dict with "message"; None without a file that can be read."""
    try:
        with open(path) as file:
            message = json.load(file)["message"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if isinstance(message, dict) and isinstance(message.get("message"), str):
        return message
    return {"message": str(message)}


class ChildFailedError(Exception):
    """Ranks that failed: the text has the first one's traceback.

    Args:
        name (str): the program.
        failures (dict): global rank -> ProcessFailure.
    """

    def __init__(self, name, failures):
        if not failures:
            raise ValueError("ChildFailedError(): expected at least one failure; got none")
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self):
        """(rank, ProcessFailure) of the rank that failed first."""
        rank = min(self.failures, key=lambda r: self.failures[r].timestamp)
        return rank, self.failures[rank]

    def format_msg(self):
        """The failures as text: the first one, then the others."""
        first, _ = self.get_first_failure()
        others = [r for r in sorted(self.failures) if r != first]
        width = 60
        lines = [f"{self.name} FAILED", "-" * width, "Root Cause (first observed failure):"]
        lines += self._format(0, first)
        if others:
            lines += ["-" * width, "Other failures:"]
        for i, rank in enumerate(others, 1):
            lines += self._format(i, rank)
        return "\n".join(["", "=" * width, *lines, "=" * width])

    def _format(self, number, rank):
        failure = self.failures[rank]
        extra = failure.error_file_data.get("extraInfo", {})
        text = extra.get("py_callstack") or failure.message
        text = text or "not known: the main function is not decorated with `record`"
        first, *rest = text.rstrip().splitlines()
        return [
            f"[{number}]:",
            f"  time      : {failure.timestamp_isoformat()}",
            f"  host      : {socket.gethostname()}",
            f"  rank      : {rank} (local_rank: {failure.local_rank})",
            f"  exitcode  : {failure.exitcode} (pid: {failure.pid})",
            f"  error_file: {failure.error_file}",
            f"  traceback : {first}",
            *(f"    {line}" for line in rest),
        ]


def _write_error_file(error):
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    extra = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
    message = {"message": f"{type(error).__name__}: {error}", "extraInfo": extra}
    with open(path, "w") as file:
        json.dump({"message": message}, file)


def record(fn, error_handler=None):
    """A decorator: an error of the function is written to TORCHELASTIC_ERROR_FILE if that is set.

    Example:
        >>> @record
        ... def main():
        ...     return 0
        >>> main()
        0
    """

    @functools.wraps(fn)
    def run(*args, **kwargs):
        try:
            return fn(*args, **kwargs)
        except SystemExit as stop:
            # A program that ends with status zero did not fail.
            if stop.code:
                _write_error_file(stop)
            raise
        except ChildFailedError as error:
            # A launcher within a launcher: the error is that of the rank.
            _, failure = error.get_first_failure()
            path = os.environ.get("TORCHELASTIC_ERROR_FILE")
            if path and failure.error_file_data:
                with open(path, "w") as file:
                    json.dump({"message": failure.error_file_data}, file)
            elif path:
                _write_error_file(error)
            raise
        except Exception as error:
            _write_error_file(error)
            raise

    return run
