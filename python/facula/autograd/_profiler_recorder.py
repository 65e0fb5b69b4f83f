"""Records calls of operators while it is on. Off, it does not exist: calls pass nothing.

A dispatch mode sees every operator below autograd, in the thread that switched the recorder on.
Blocks of `record_function` enclose what runs within them.
"""

from __future__ import annotations

import sys
import threading
import time

from facula import _C
from facula.autograd.profiler_util import EventList, FunctionEvent
from facula.utils._python_dispatch import TorchDispatchMode

# Modules whose frames are not the program's own.
_OWN = ("facula.autograd", "facula.profiler", "contextlib")
_current = threading.local()


def current():
    """The recorder of this thread, or None."""
    return getattr(_current, "recorder", None)


def _shapes(args):
    def of(value):
        if isinstance(value, _C.Tensor):
            return list(value.shape)
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], _C.Tensor):
            return [of(x) for x in value]
        return []

    return [of(value) for value in args]


def _stack():
    """The lines of Python that lead here, the innermost first, without the library's own."""
    frame, lines = sys._getframe(1), []
    while frame is not None:
        code = frame.f_code
        if not frame.f_globals.get("__name__", "").startswith(_OWN):
            lines.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return lines


class Recorder(TorchDispatchMode):
    """A mode that notes each call: when, how long, and what is asked for beside.

    Args:
        record_shapes, profile_memory, with_stack, with_flops (bool): what is noted beside.
    """

    def __init__(
        self, record_shapes=False, profile_memory=False, with_stack=False, with_flops=False
    ):
        super().__init__()
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops = with_stack, with_flops
        self.events, self._open = [], []
        self._since, self._until = time.perf_counter_ns() / 1e3, None

    def __enter__(self):
        self._outer, _current.recorder = current(), self
        return super().__enter__()

    def __exit__(self, *exception):
        super().__exit__(*exception)
        self._until = time.perf_counter_ns() / 1e3
        _current.recorder = self._outer

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        facts = {"input_shapes": _shapes(args)} if self.record_shapes else {}
        name, _, facts["overload_name"] = func.name().partition(".")
        event = self.begin(name, facts)
        try:
            result = func(*args, **kwargs)
        finally:
            self.end(event)
        if self.with_flops:
            from facula.utils.flop_counter import count_flops

            event.flops = count_flops(func, args, kwargs, result)
        return result

    def begin(self, name, facts):
        """Start an event; returns it."""
        if self.with_stack:
            facts["stack"] = _stack()
        event = FunctionEvent(len(self.events), name, threading.get_native_id(), 0.0, 0.0, **facts)
        self.events.append(event)
        if self._open:
            self._open[-1].append_cpu_child(event)
        self._open.append(event)
        if self.profile_memory:
            event.self_cpu_memory_usage = -_C._memory_stats()["allocated"]
        event.time_range.start = time.perf_counter_ns() / 1e3
        return event

    def end(self, event):
        """End an event."""
        event.time_range.end = time.perf_counter_ns() / 1e3
        if self.profile_memory:
            event.self_cpu_memory_usage += _C._memory_stats()["allocated"]
            event.self_cpu_memory_usage -= sum(c.cpu_memory_usage for c in event.cpu_children)
        self._open.remove(event)

    def event_list(self):
        """The events so far, as an EventList."""
        now = time.perf_counter_ns() / 1e3
        for event in self._open:
            event.time_range.end = now
        events = self.events
        if "facula.distributed._world" in sys.modules:  # else no group has been called
            from facula.distributed._trace_spans import spans

            events = [*events, *spans(len(events), self._since, self._until or now)]
        return EventList(events, profile_memory=self.profile_memory, with_flops=self.with_flops)
