"""Times that were measured, and what they are of."""

from __future__ import annotations

import dataclasses
import statistics
from contextlib import contextmanager
from math import ceil, floor, log10

import facula

_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
# Spread over the median from which a result is doubted.
_WARN_SPREAD = 0.1


def select_unit(t):
    """The unit for a time in seconds, and how many seconds it has.

    Example:
        >>> select_unit(2e-6)
        ('us', 1e-06)
    """
    for unit in ("s", "ms", "us"):
        if t >= _UNITS[unit]:
            return unit, _UNITS[unit]
    return "ns", _UNITS["ns"]


def unit_to_english(u):
    """The name of a unit."""
    return _ENGLISH[u]


def trim_sigfig(x, n):
    """A number with `n` significant digits.

    Example:
        >>> trim_sigfig(1234.5, 2)
        1200.0
    """
    if x == 0:
        return 0.0
    scale = 10 ** (ceil(log10(abs(x))) - n)
    return float(floor(x / scale + 0.5) * scale)


def ordered_unique(elements):
    """Elements without repetitions, in order, as a list."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n):
    """Context manager: operators use `n` threads within."""
    before = facula.get_num_threads()
    facula.set_num_threads(n)
    try:
        yield
    finally:
        facula.set_num_threads(before)


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What is timed."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        """The labels, or the statement where there are none."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt if "\n" not in self.stmt else f"stmt:\n{self.stmt}"

    def setup_str(self):
        """The setup under its label; empty where there is none."""
        if self.setup in ("", "pass"):
            return ""
        if "\n" not in self.setup:
            return f"setup: {self.setup}"
        lines = "".join(f"  {line}\n" for line in self.setup.splitlines())
        return f"setup:\n{lines}"

    def summarize(self):
        """Title, description, setup and threads, a line each."""
        lines = [self.title, self.description or "", self.setup_str()]
        return "\n".join(line for line in lines if line)


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of one statement.

    Args:
        number_per_run (int): how often it ran in each of the times.
        raw_times (list of float): seconds.
        task_spec (TaskSpec): what ran.
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict | None = None

    def __getattr__(self, name):
        if name != "task_spec" and hasattr(TaskSpec, name) or name in TaskSpec.__annotations__:
            return getattr(self.task_spec, name)
        raise AttributeError(f"Measurement has no attribute {name!r}")

    @property
    def times(self):
        """Seconds of one run of the statement, a list."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self):
        """The median of `times`."""
        return statistics.median(self.times)

    @property
    def mean(self):
        """The mean of `times`."""
        return statistics.fmean(self.times)

    @property
    def iqr(self):
        """What lies between the quarters of `times`."""
        if len(self.times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return third - first

    @property
    def significant_figures(self):
        """How many digits of the median the spread lets stand; from 1 to 3."""
        spread = max(self.iqr / max(len(self.times), 1) ** 0.5, 1e-15)
        return min(max(int(floor(log10(self.median / spread))), 1), 3)

    @property
    def has_warnings(self):
        """Whether the spread is a tenth of the median or more."""
        return self.iqr / self.median >= _WARN_SPREAD

    def meets_confidence(self, threshold=_WARN_SPREAD):
        """Whether the spread is below a share of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self):
        """The title of what ran."""
        return self.task_spec.title

    @property
    def env(self):
        """Where it ran, as its task says; None without."""
        return self.task_spec.env

    @property
    def as_row_name(self):
        """The name in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self):
        unit, size = select_unit(self.median)
        many = len(self.times) > 1
        threads = self.task_spec.num_threads
        lines = [
            f"<{type(self).__module__}.{type(self).__name__} object at {id(self):#x}>",
            self.task_spec.summarize(),
            f"  {'Median: ' if many else ''}{self.median / size:.2f} {unit}",
        ]
        if len(self.times) >= 4:
            lines.append(f"  IQR:    {self.iqr / size:.2f} {unit}")
        runs = f"{self.number_per_run} runs {'per measurement' if many else ''}"
        lines.append(
            f"  {len(self.times)} measurement{'s' * many}, {runs}, "
            f"{threads} thread{'s' * (threads > 1)}"
        )
        if many and self.has_warnings:
            lines.append(
                f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the "
                "median measurement.\n"
                "           This suggests significant environmental influence."
            )
        return "\n".join(lines)

    @staticmethod
    def merge(measurements):
        """Measurements of the same statement as one each, a list."""
        groups = {}
        for m in measurements:
            groups.setdefault((m.task_spec, m.number_per_run), []).extend(m.raw_times)
        return [Measurement(number, times, task) for (task, number), times in groups.items()]
