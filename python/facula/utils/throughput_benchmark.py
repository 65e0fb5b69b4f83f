"""How many calls of a module a machine makes in a second, with several threads calling."""

from __future__ import annotations

import random
import threading
import time

__all__ = ["ExecutionStats", "ThroughputBenchmark", "format_time"]


def format_time(time_us=None, time_ms=None, time_s=None):
    """A time as text in the unit that suits it; one of the arguments is given.

    Example:
        >>> format_time(time_ms=1.5)
        '1.500ms'
    """
    if sum(t is not None for t in (time_us, time_ms, time_s)) != 1:
        raise AssertionError("format_time(): expected one of time_us, time_ms and time_s")
    if time_us is None:
        time_us = time_ms * 1e3 if time_s is None else time_s * 1e6
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if time_us >= size:
            return f"{time_us / size:.3f}{unit}"
    return f"{time_us:.3f}us"


class ExecutionStats:
    """What a benchmark measured.

    Args:
        latency_avg_ms (float): time of a call.
        num_iters (int): calls.
        benchmark_config (dict): what the benchmark was asked for.
    """

    def __init__(self, latency_avg_ms, num_iters, benchmark_config):
        self.latency_avg_ms, self.num_iters = latency_avg_ms, num_iters
        self.benchmark_config = benchmark_config

    @property
    def iters_per_second(self):
        """Calls in a second, of all threads."""
        return self.num_iters / self.total_time_seconds

    @property
    def total_time_seconds(self):
        """How long it took."""
        threads = self.benchmark_config["num_calling_threads"]
        return self.num_iters * self.latency_avg_ms / 1000 / threads

    def __str__(self):
        return "\n".join(
            [
                f"Average latency per example: {format_time(time_ms=self.latency_avg_ms)}",
                f"Total number of iterations: {self.num_iters}",
                "Total number of iterations per second (across all threads): "
                f"{self.iters_per_second:.2f}",
                f"Total time: {format_time(time_s=self.total_time_seconds)}",
            ]
        )


class ThroughputBenchmark:
    """Calls a module from several threads, with inputs chosen at random.

    Args:
        module (callable): what is called.

    Example:
        >>> bench = facula.utils.ThroughputBenchmark(facula.nn.Identity())
        >>> bench.add_input(facula.ones(2))
        >>> bench.benchmark(num_iters=10, num_warmup_iters=1).num_iters
        10
    """

    def __init__(self, module):
        self._module = module
        self._inputs = []

    def run_once(self, *args, **kwargs):
        """The result of one call."""
        return self._module(*args, **kwargs)

    def add_input(self, *args, **kwargs):
        """Keep arguments for calls of the benchmark."""
        self._inputs.append((args, kwargs))

    def benchmark(
        self, num_calling_threads=1, num_warmup_iters=10, num_iters=100, profiler_output_path=""
    ):
        """Measures calls.

        Args:
            num_calling_threads (int): threads that call.
            num_warmup_iters (int): calls of each thread before the measuring.
            num_iters (int): calls in all.
            profiler_output_path (str): where a Chrome trace goes; "" for none.

        Returns:
            ExecutionStats

        Raises:
            RuntimeError: add_input() was not called.
        """
        if not self._inputs:
            raise RuntimeError("benchmark(): expected add_input() before; got no inputs")
        if profiler_output_path:
            from facula.profiler import profile

            with profile() as measured:
                stats = self.benchmark(num_calling_threads, num_warmup_iters, num_iters)
            measured.export_chrome_trace(profiler_output_path)
            return stats
        return self._measured(num_calling_threads, num_warmup_iters, num_iters)

    def _measured(self, num_calling_threads, num_warmup_iters, num_iters):
        left, lock, errors = iter(range(num_iters)), threading.Lock(), []
        times = []
        start = threading.Barrier(num_calling_threads)

        def call():
            chooser = random.Random(0)
            for _ in range(num_warmup_iters):
                self._call_one(chooser)
            start.wait()
            begin = time.perf_counter()
            while True:
                with lock:
                    if next(left, None) is None:
                        break
                self._call_one(chooser)
            times.append(time.perf_counter() - begin)

        def guarded():
            try:
                call()
            except Exception as error:
                start.abort()
                errors.append(error)

        threads = [threading.Thread(target=guarded) for _ in range(num_calling_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise next(e for e in errors if not isinstance(e, threading.BrokenBarrierError))
        config = {
            "num_calling_threads": num_calling_threads,
            "num_warmup_iters": num_warmup_iters,
            "num_iters": num_iters,
            "profiler_output_path": "",
        }
        return ExecutionStats(sum(times) / num_iters * 1000, num_iters, config)

    def _call_one(self, chooser):
        args, kwargs = chooser.choice(self._inputs)
        self._module(*args, **kwargs)
