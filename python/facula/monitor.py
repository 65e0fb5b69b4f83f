"""Counts and events of a program that runs, for handlers that send them on."""

from __future__ import annotations

import enum
import math
import threading
import time
from contextlib import contextmanager
from datetime import datetime

STAT_EVENT = "torch.monitor.Stat"
data_value_t = (str, float, int, bool)


class Aggregation(enum.Enum):
    """What a Stat makes of the values of a window."""

    VALUE = 1
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6

    def __repr__(self):
        return f"<Aggregation.{self.name}: {self.value}>"


VALUE, MEAN, COUNT, SUM, MAX, MIN = Aggregation


class Event:
    """Something that happened.

    Args:
        name (str): what.
        timestamp (datetime): when.
        data (dict): names and values: str, float, int or bool.
    """

    def __init__(self, name, timestamp, data):
        for key, value in data.items():
            if not isinstance(key, str) or not isinstance(value, data_value_t):
                raise TypeError(f"Event(): data must map str to str or numbers; got {data}")
        self.name, self.timestamp, self.data = name, timestamp, data


class EventHandlerHandle:
    """What `unregister_event_handler` takes."""

    def __init__(self, handler):
        self._handler = handler


_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback):
    """Call a function with every Event from now on; returns an EventHandlerHandle."""
    if not callable(callback):
        raise TypeError(f"register_event_handler(): expected a callable; got {callback!r}")
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler):
    """Call the function of a handle no more."""
    if handler in _handlers:
        _handlers.remove(handler)


def log_event(event):
    """Give an Event to all handlers.

    Example:
        >>> seen = []
        >>> handle = facula.monitor.register_event_handler(lambda e: seen.append(e.name))
        >>> facula.monitor.log_event(facula.monitor.Event("start", datetime.now(), {}))
        >>> facula.monitor.unregister_event_handler(handle)
        >>> seen
        ['start']
    """
    for handle in list(_handlers):
        handle._handler(event)


class Stat:
    """Counts values; at the end of each window its aggregations are logged as an Event.

    Args:
        name (str): of the count.
        aggregations (list of Aggregation): what is logged.
        window_size (timedelta): how long a window lasts.
        max_samples (int): how many values a window takes at most.

    Example:
        >>> from datetime import timedelta
        >>> stat = Stat("loss", [Aggregation.SUM, Aggregation.COUNT], timedelta(hours=1))
        >>> stat.add(1.5)
        >>> stat.count
        1
    """

    def __init__(self, name, aggregations, window_size, max_samples=None):
        self.name = name
        self._aggregations = list(aggregations)
        self._window = window_size.total_seconds()
        self._limit = math.inf if max_samples is None else max_samples
        self._lock = threading.Lock()
        self._start = time.monotonic()
        self._values, self._last = [], {}

    def add(self, v):
        """Add a value (float) to the window."""
        with self._lock:
            self._end_window_if_over()
            if len(self._values) < self._limit:
                self._values.append(float(v))

    @property
    def count(self):
        """How many values this window has."""
        return len(self._values)

    def get(self):
        """The aggregations of the last window that ended, as a dict."""
        with self._lock:
            self._end_window_if_over()
            return dict(self._last) or dict.fromkeys(self._aggregations, 0.0)

    def _end_window_if_over(self):
        now = time.monotonic()
        if now - self._start < self._window:
            return
        self._start = now
        if not self._values:
            return
        made = {
            VALUE: self._values[-1],
            MEAN: math.fsum(self._values) / len(self._values),
            COUNT: float(len(self._values)),
            SUM: math.fsum(self._values),
            MAX: max(self._values),
            MIN: min(self._values),
        }
        self._last = {kind: made[kind] for kind in self._aggregations}
        self._values = []
        data = {f"{self.name}.{kind.name.lower()}": value for kind, value in self._last.items()}
        log_event(Event(STAT_EVENT, datetime.now(), data))


class TensorboardEventHandler:
    """A handler that writes the values of Stats with a SummaryWriter.

    Args:
        writer (SummaryWriter): has `add_scalar`.
    """

    def __init__(self, writer):
        self._writer = writer

    def __call__(self, event):
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())


class _WaitCounter:
    """Counts how long is waited for something; nobody reads it here."""

    def __init__(self, key):
        self.key = key

    @contextmanager
    def guard(self):
        """Context manager around the wait."""
        yield
