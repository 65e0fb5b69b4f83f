"""Calls of compiled functions that skip their Python code (docs/internals/skipping_python.md)."""

from __future__ import annotations

import sys

from facula import _C
from facula._dynamo.skip.reader import Reader, Refused
from facula._logging import say

# How many calls without a stored program come before one is read.
calls_before = 8


def is_available():
    """Whether this interpreter is one whose frames and dicts are known: CPython 3.11."""
    return hasattr(_C, "_watch_frames") and sys.implementation.name == "cpython"


def counts(compiled):
    """What became of the calls of a function or module that was compiled with `skip_python`.

    Returns:
        A dict: how many calls were `played` from `programs`, after how many `readings`, and
        why the last reading was `refused`, or ""; None if the function was compiled without.
    """
    context = vars(compiled).get("dynamo_ctx")
    site = getattr(context.call if context else compiled, "skip_site", None)
    return site.counts() if site else None


class Skipping:
    """The stored programs of a function: call it in place of the function.

    Args:
        function (callable): a function or module.
    """

    def __init__(self, function):
        self._name = getattr(function, "__qualname__", type(function).__qualname__)
        self.site = _C._SkipSite(self._read)
        self.site.set_calls_before(calls_before)

    def _read(self, site, function, args, kwargs):
        """Call the function once under a reader; stores its program if it can be stored."""
        reader = Reader()
        try:
            result = reader.run(function, args, kwargs)
        finally:
            if reader.reason is not None:
                self._refuse(site, reader.reason)
        if reader.reason is None:
            self._store(site, reader, result)
        return result

    def _store(self, site, reader, result):
        try:
            program = reader.finish(result)
        except (Refused, RuntimeError, TypeError) as error:
            return self._refuse(site, str(error))
        site.add(program)
        counts = program.counts()
        say(
            "skip",
            f"{self._name}: its Python is skipped where {counts['watched']} things are as they "
            f"were: {counts['calls']} calls of operators",
        )

    def _refuse(self, site, reason):
        say("skip", f"{self._name}: its Python runs: {reason}")
        site.set_refused(reason)
