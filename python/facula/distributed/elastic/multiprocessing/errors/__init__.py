"""How a process of such a program tells its error to the launcher."""

from __future__ import annotations

import functools
import json
import os
import time
import traceback


class ChildFailedError(Exception):
    """A process that failed.

    Args:
        name (str): the program.
        failures (dict): what failed, for each process.
    """

    def __init__(self, name, failures):
        self.name, self.failures = name, failures
        super().__init__(f"{name} failed: {failures}")


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
        except Exception as error:
            _write_error_file(error)
            raise

    return run
