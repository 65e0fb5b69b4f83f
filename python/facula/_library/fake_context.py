"""What a shape rule of a custom operator may ask for while it runs."""

from __future__ import annotations

import functools
import threading

from facula import _C

_running = threading.local()


class FakeContext:
    """What a shape rule asks for when a result's size depends on data."""

    def new_dynamic_size(self, *, min=0, max=None):
        """The number that stands for a size which data decide, in a trace with symbolic sizes.

        Args:
            min (int), max (int | None): what the size can be.

        Returns:
            int: for the shape of the rule's result.

        Raises:
            NotImplementedError: nothing stands for data, as on the meta device.

        Example:
            >>> def rule(x):  # of an operator like nonzero()
            ...     rows = facula.library.get_ctx().new_dynamic_size(max=x.numel())
            ...     return x.new_empty(rows, x.dim(), dtype=facula.int64)
        """
        sizes = _C._data_sizes()
        if sizes is None:
            raise NotImplementedError(
                "new_dynamic_size(): expected a trace with symbolic sizes, as export() makes; the "
                "result depends on data"
            )
        return sizes.size(max, min)

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
