"""Timer: runs a statement often enough to tell how long it takes."""

from __future__ import annotations

import enum
import timeit
from timeit import default_timer as timer

from facula.utils.benchmark.measurement import Measurement, TaskSpec, set_torch_threads


class Language(enum.Enum):
    """Of the statement."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Times a statement of Python, on one thread unless told otherwise.

    Args:
        stmt, setup (str): what is timed, and what runs before.
        timer: gives seconds.
        globals (dict): names that the statement knows.
        label, sub_label, description, env (str): where the result stands in a table.
        num_threads (int): how many threads operators use.

    Raises:
        NotImplementedError: a statement of C++.

    Example:
        >>> m = Timer("x + 1", globals={"x": facula.ones(3)}).timeit(5)
        >>> m.number_per_run, len(m.times)
        (5, 1)
    """

    def __init__(
        self,
        stmt="pass",
        setup="pass",
        global_setup="",
        timer=timer,
        globals=None,
        label=None,
        sub_label=None,
        description=None,
        env=None,
        num_threads=1,
        language=Language.PYTHON,
    ):
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError("Timer(): statements of C++ are not timed")
        names = dict(globals or {})
        if "facula" not in names and "torch" not in names:
            import facula

            names["torch"] = names["facula"] = facula
        self._timer = timeit.Timer(stmt, setup, timer=timer, globals=names)
        self._task_spec = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )

    def _timeit(self, number):
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number=1_000_000):
        """Run the statement `number` times, after some runs that do not count; a Measurement."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat=-1, number=-1):
        """NotImplementedError, as PyTorch's: `blocked_autorange` repeats."""
        raise NotImplementedError("Timer.repeat() is not there; blocked_autorange() repeats")

    def autorange(self, callback=None):
        """NotImplementedError: `blocked_autorange` finds the number of runs."""
        raise NotImplementedError("Timer.autorange() is not there; use blocked_autorange()")

    def _block_size(self, min_run_time):
        """How many runs take a thousandth of the time, so that the clock weighs little."""
        number = 1
        while True:
            taken = self._timeit(number)
            if taken >= min_run_time / 1000 or number >= 1 << 30:
                return number
            number *= 10

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Run the statement in blocks for at least `min_run_time` seconds; a Measurement."""
        return self.adaptive_autorange(
            float("inf"), min_run_time=min_run_time, max_run_time=min_run_time, callback=callback
        )

    def adaptive_autorange(
        self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None
    ):
        """Run the statement in blocks until the spread is below a share of the median.

        Args:
            threshold (float): that share.
            min_run_time, max_run_time (float): seconds at least and at most.
        """
        with set_torch_threads(self._task_spec.num_threads):
            number, times, total = self._block_size(min_run_time), [], 0.0
            while total < max_run_time:
                taken = self._timeit(number)
                times.append(taken)
                total += taken
                if callback is not None:
                    callback(number, taken)
                found = Measurement(number, times, self._task_spec)
                enough = total >= min_run_time and len(times) >= 4
                if enough and found.meets_confidence(threshold):
                    break
            return Measurement(number, times, self._task_spec)

    def collect_callgrind(
        self, number=100, *, repeats=None, collect_baseline=True, retain_out_file=False
    ):
        """Count instructions with Valgrind: NotImplementedError.

        Args:
            number, repeats (int), collect_baseline, retain_out_file (bool): as PyTorch has them.
        """
        raise NotImplementedError(
            "Timer.collect_callgrind(): facula has no switch for Callgrind's counting yet; run "
            "`valgrind --tool=callgrind python script.py`, or time with adaptive_autorange()"
        )
