"""Functions that answer later."""

from __future__ import annotations

import functools

__all__ = ["async_execution"]


def async_execution(fn):
    """Mark a function that returns a Future: its caller gets the value, when it is there.

    The thread that runs it can meanwhile do other calls.

    Args:
        fn (callable): returns a `facula.futures.Future`.

    Example:
        >>> @facula.distributed.rpc.functions.async_execution
        ... def later(x):
        ...     future = facula.futures.Future()
        ...     future.set_result(x + 1)
        ...     return future
        >>> later(1).wait()
        2
    """

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    wrapper._wrapped_async_rpc_function = wrapper
    return wrapper
