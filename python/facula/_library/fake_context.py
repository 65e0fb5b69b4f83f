"""What a shape rule of a custom operator may ask for while it runs."""

from __future__ import annotations

import functools
import threading

_running = threading.local()


class FakeContext:
    """What a shape rule asks for when a result's size depends on data."""

    def new_dynamic_size(self, *, min=0, max=None):
        """Not supported: facula has no symbolic sizes yet."""
        raise NotImplementedError("new_dynamic_size(): symbolic sizes are not supported yet")

    create_unbacked_symint = new_dynamic_size


def current_context():
    """The context of the shape rule that runs on this thread, or None."""
    return getattr(_running, "context", None)


def shape_rule(function):
    """The function as a shape rule: there is a context while it runs."""

    @functools.wraps(function)
    def run(*args, **kwargs):
        before = current_context()
        _running.context = FakeContext()
        try:
            return function(*args, **kwargs)
        finally:
            _running.context = before

    return run
