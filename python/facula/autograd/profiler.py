"""The profiler's names of old: `profile`, `record_function`, marks for tools that are absent."""

from __future__ import annotations

import functools

from facula.autograd._profiler_enums import DeviceType, ProfilerActivity  # noqa: F401
from facula.autograd._profiler_recorder import Recorder, current
from facula.autograd.profiler_util import (  # noqa: F401
    EventList,
    FunctionEvent,
    FunctionEventAvg,
)

__all__ = [
    "profile",
    "record_function",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "EnforceUnique",
    "parse_nvprof_trace",
    "KinetoStepTracker",
    "EventList",
    "FunctionEvent",
]


class record_function:
    """Context manager and decorator: what runs within has a name in the profile.

    Args:
        name (str): the name.
        args (str): a note, kept with it.

    Example:
        >>> with facula.autograd.profiler.profile() as prof:
        ...     with facula.autograd.profiler.record_function("block"):
        ...         y = facula.ones(2) + 1
        >>> [event.name for event in prof.function_events][0]
        'block'
    """

    def __init__(self, name, args=None):
        self.name, self.args = name, args
        self._event = self._recorder = None

    def __enter__(self):
        self._recorder = current()
        if self._recorder is not None:
            self._event = self._recorder.begin(self.name, {"is_user_annotation": True})
        return self

    def __exit__(self, *exception):
        if self._event is not None:
            self._recorder.end(self._event)
            self._event = None
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return run


class profile:
    """Context manager: operators that run within are timed.

    Args:
        enabled (bool): False records nothing.
        record_shapes, with_flops, profile_memory, with_stack (bool): what is noted beside.

    Example:
        >>> with facula.autograd.profiler.profile() as prof:
        ...     y = facula.ones(2) * 2
        >>> prof.key_averages()[0].count
        1
    """

    def __init__(
        self,
        enabled=True,
        *,
        use_cuda=False,
        use_device=None,
        record_shapes=False,
        with_flops=False,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
        use_kineto=False,
        use_cpu=True,
        **options,
    ):
        self.enabled = enabled
        self._recorder = Recorder(record_shapes, profile_memory, with_stack, with_flops)
        self.entered, self.function_events = False, None

    def __enter__(self):
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._recorder.__enter__()
        return self

    def __exit__(self, *exception):
        if self.enabled:
            self._recorder.__exit__(*exception)
            self.function_events = self._recorder.event_list()
        return False

    def _finished(self):
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def __repr__(self):
        events = self.function_events
        return "<unfinished torch.autograd.profile>" if events is None else repr(events)

    def __str__(self):
        events = self.function_events
        return "<unfinished torch.autograd.profile>" if events is None else str(events)

    def table(self, *args, **kwargs):
        """`EventList.table` of the events."""
        return self._finished().table(*args, **kwargs)

    def key_averages(self, *args, **kwargs):
        """`EventList.key_averages` of the events."""
        return self._finished().key_averages(*args, **kwargs)

    def total_average(self):
        """`EventList.total_average` of the events."""
        return self._finished().total_average()

    def export_chrome_trace(self, path):
        """`EventList.export_chrome_trace` of the events."""
        self._finished().export_chrome_trace(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """`EventList.export_stacks` of the events."""
        self._finished().export_stacks(path, metric)

    @property
    def self_cpu_time_total(self):
        """Microseconds of all events."""
        return self._finished().self_cpu_time_total


class _absent_tool:
    """Context manager: marks for a tool that this build does not have; nothing is marked."""

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled = enabled

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False


class emit_itt(_absent_tool):
    """Context manager: marks for Intel's VTune; this build has none."""


class emit_nvtx(_absent_tool):
    """Context manager: marks for NVIDIA's Nsight; RuntimeError without CUDA."""

    def __enter__(self):
        if self.enabled:
            raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")
        return self


def load_nvprof(path):
    """Read a file of nvprof: NotImplementedError."""
    raise NotImplementedError("load_nvprof(): files of nvprof are not read")


parse_nvprof_trace = load_nvprof


class EnforceUnique:
    """Raises RuntimeError when a key is seen twice."""

    def __init__(self):
        self.seen = set()

    def see(self, *key):
        """Note a key."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class KinetoStepTracker:
    """Counts the steps of a program, for all who ask."""

    _steps: dict = {}

    @classmethod
    def init_step_count(cls, requester):
        """Begin counting for a requester (str)."""
        cls._steps[requester] = cls.current_step()

    @classmethod
    def erase_step_count(cls, requester):
        """Count no more for a requester; returns whether it was known."""
        return cls._steps.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester):
        """Count a step of a requester; returns the largest count."""
        cls._steps[requester] = cls._steps.get(requester, 0) + 1
        return cls.current_step()

    @classmethod
    def current_step(cls):
        """The largest count."""
        return max(cls._steps.values(), default=0)
