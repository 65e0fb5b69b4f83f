"""Values that are there later: Future, and waiting for many."""

from __future__ import annotations

import sys
import threading
from typing import Generic, TypeVar

T = TypeVar("T")
S = TypeVar("S")

__all__ = ["Future", "collect_all", "wait_all"]


class Future(Generic[T]):
    """A value that another part of the program sets, and what is to be done with it.

    Args:
        devices (list): devices of the value's tensors; accelerators only.

    Example:
        >>> future = facula.futures.Future()
        >>> doubled = future.then(lambda done: done.value() * 2)
        >>> future.set_result(3)
        >>> doubled.wait()
        6
    """

    def __init__(self, *, devices=None):
        import facula

        for device in devices or ():
            if not isinstance(device, int) and facula.device(device).type == "cpu":
                raise ValueError(f"Expected devices to have indices, got {device}")
        self._changed = threading.Condition()
        self._done = False
        self._result = self._error = None
        self._callbacks = []

    def done(self):
        """Whether the value, or an error in its place, is there."""
        return self._done

    def wait(self):
        """The value, as soon as it is there.

        Raises:
            the error that was set in place of a value.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        return self.value()

    def value(self):
        """The value that is there.

        Raises:
            RuntimeError: it is not there yet.
        """
        if not self._done:
            raise RuntimeError(
                "Attempting to get the value of a Future that is not complete; wait() for it"
            )
        if self._error is not None:
            raise self._error
        return self._result

    def then(self, callback):
        """A Future of what `callback(self)` gives when the value is there.

        Args:
            callback: takes this Future. What it raises, the new Future raises.
        """
        following = Future()

        def run(future):
            try:
                result = callback(future)
            except Exception as error:
                following.set_exception(error)
            else:
                following.set_result(result)

        self._when_done(run)
        return following

    def add_done_callback(self, callback):
        """Call `callback(self)` when the value is there; what it raises is printed."""

        def run(future):
            try:
                callback(future)
            except Exception as error:
                print(
                    f"add_done_callback(): the callback raised {type(error).__name__}: {error}",
                    file=sys.stderr,
                )

        self._when_done(run)

    def _when_done(self, run):
        with self._changed:
            if not self._done:
                self._callbacks.append(run)
                return
        run(self)

    def set_result(self, result):
        """Set the value.

        Raises:
            RuntimeError: it was set before.
        """
        self._finish(result, None)

    def set_exception(self, result):
        """Set an error in place of the value."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, result, error):
        with self._changed:
            if self._done:
                raise RuntimeError("set_result(): this Future is complete already")
            self._result, self._error, self._done = result, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for run in callbacks:
            run(self)


def collect_all(futures):
    """A Future of the list of Futures, which is there when all of them are.

    Example:
        >>> one, two = facula.futures.Future(), facula.futures.Future()
        >>> both = facula.futures.collect_all([one, two])
        >>> one.set_result(1); two.set_result(2)
        >>> [future.value() for future in both.wait()]
        [1, 2]
    """
    futures = list(futures)
    everything = Future()
    if not futures:
        everything.set_result([])
        return everything
    lock, left = threading.Lock(), [len(futures)]

    def one_is_done(future):
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            everything.set_result(futures)

    for future in futures:
        future._when_done(one_is_done)
    return everything


def wait_all(futures):
    """The values of all Futures, as a list; the first error that one of them has is raised.

    Example:
        >>> one = facula.futures.Future()
        >>> one.set_result(1)
        >>> facula.futures.wait_all([one])
        [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]
