"""Settings of TorchScript's executor, which are remembered, and tasks, which run at once."""

from __future__ import annotations

from contextlib import contextmanager

from facula.futures import Future

_state = {"onednn": False, "fusion": [("STATIC", 2), ("DYNAMIC", 10)]}


def enable_onednn_fusion(enabled):
    """Remember whether graphs were to be fused."""
    _state["onednn"] = bool(enabled)


def onednn_fusion_enabled():
    """What `enable_onednn_fusion` was last told."""
    return _state["onednn"]


def set_fusion_strategy(strategy):
    """Remember a list of ("STATIC" or "DYNAMIC", depth); returns the one before.

    Example:
        >>> before = facula.jit.set_fusion_strategy([("STATIC", 1)])
        >>> facula.jit.set_fusion_strategy(before)
        [('STATIC', 1)]
    """
    before, _state["fusion"] = _state["fusion"], list(strategy)
    return before


_set_fusion_strategy = set_fusion_strategy


@contextmanager
def optimized_execution(should_optimize):
    """Context manager: nothing changes, as Python runs within."""
    yield


@contextmanager
def fuser(name):
    """Context manager: nothing changes, as Python runs within.

    Raises:
        Exception: the name is none of "fuser0" to "fuser3" and "none".
    """
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3", "none"):
        raise Exception(f"unrecognized fuser option (name: {name})")
    yield


class strict_fusion:
    """Context manager: nothing changes, as Python runs within."""

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        return None


def export_opnames(m):
    """The operators of a scripted module: NotImplementedError, as it needs a compiler."""
    raise NotImplementedError("jit.export_opnames(): facula has no TorchScript compiler")


def fork(func, *args, **kwargs):
    """Run a function at once, as TorchScript's interpreter does outside of compiled programs.

    Returns:
        Future: it holds the result.

    Example:
        >>> facula.jit.wait(facula.jit.fork(lambda x: x + 1, 1))
        2
    """
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future):
    """The result of a task."""
    return future.wait()
