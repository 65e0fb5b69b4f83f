"""How fast the machine could do a case at best: bytes over copy bandwidth, operations over peak.

What a case has to do is found by watching one call of it: each tensor that it reads or writes
moves once, whatever the kernels do between, and products count their multiplications and
additions. What the machine can do is measured: copies of many sizes, whose speed is that of the
cache that holds them, and the best product that any module reaches.
"""

import bisect
import ctypes
import functools
import threading
import time
from typing import NamedTuple

import numpy as np

KIB = 1024
SIZES = [16 * KIB * 2**i for i in range(14)]  # bytes that a copy reads and writes: to 128 MB
# Calls of shorter copies would wait for the interpreter more than for memory.
SHORTEST_BESIDE_OTHERS = 256 * KIB
PRODUCTS = (256, 512, 768)


class Work(NamedTuple):
    """What one call cannot do without: bytes that move, operations by dtype of the products."""

    traffic: int
    operations: int
    dtype: str


def tensors_in(value):
    """The tensors in a structure of lists, tuples and dictionaries."""
    if hasattr(value, "untyped_storage"):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def bytes_of(tensor):
    """Bytes of a tensor's elements, those that an expanded tensor repeats counted once."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= size if stride or not size else 1
    return count * tensor.element_size()


def watcher(module):
    """A mode that notes which memory calls read and write; see `Work`."""
    from_package = __import__(f"{module.__name__}.utils._python_dispatch", fromlist=["_"])

    class Watch(from_package.TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.read, self.written, self.made, self.kept = {}, {}, set(), []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            inputs = list(tensors_in([args, kwargs or {}]))
            result = function(*args, **(kwargs or {}))
            results = list(tensors_in(result))
            self.kept += inputs + results  # whose addresses are names here
            if function._schema.is_mutable or not self.is_view(inputs, results):
                self.note(inputs, results, function._schema.is_mutable)
            return result

        @staticmethod
        def is_view(inputs, results):
            places = {t.untyped_storage()._cdata for t in inputs}
            return bool(results) and all(t.untyped_storage()._cdata in places for t in results)

        def note(self, inputs, results, mutates):
            chosen = any(t.dtype == module.int64 for t in inputs) and len(inputs) > 1
            most = sum(map(bytes_of, results)) if chosen and results else float("inf")
            for t in inputs:
                place = t.untyped_storage()._cdata
                if place not in self.made:
                    # Where integers choose elements, no more is read than comes out.
                    size = min(bytes_of(t), most) if t.dtype != module.int64 else bytes_of(t)
                    self.read[place] = max(size, self.read.get(place, 0))
            for t in results:
                place = t.untyped_storage()._cdata
                if place not in self.read:
                    self.made.add(place)
                elif mutates:
                    self.written[place] = bytes_of(t)

    return Watch()


class UnknownWork(Exception):
    """A call cannot be watched; the text says why."""


def work_of(run, module):
    """The Work of one call of `run`, a case on this module; UnknownWork if it cannot be watched."""
    counter = __import__(f"{module.__name__}.utils.flop_counter", fromlist=["_"])
    watch = watcher(module)
    try:
        with counter.FlopCounterMode(display=False) as operations, watch:
            result = run()
        results = [t for t in tensors_in(result)]
        out = sum(bytes_of(t) for t in results if t.untyped_storage()._cdata in watch.made)
    except Exception as error:  # layouts without one storage, modules without the modes
        reason = str(error).partition("\n")[0]
        raise UnknownWork(f"{type(error).__name__}: {reason}") from error
    traffic = sum(watch.read.values()) + sum(watch.written.values()) + out
    floats = [str(t.dtype).rpartition(".")[2] for t in results if t.is_floating_point()]
    return Work(int(traffic), operations.get_total_flops(), (floats or ["float32"])[0])


def seconds_of_moves(pairs, size):
    """Seconds of one memmove() of `size` bytes on as many threads as there are pairs."""
    rounds = max(1, 2**25 // size)

    def move(pair):
        to, source = (p.ctypes.data for p in pair)
        for _ in range(rounds):
            ctypes.memmove(to, source, size)

    best = float("inf")
    for _ in range(5):
        workers = [threading.Thread(target=move, args=(pair,)) for pair in pairs]
        began = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        best = min(best, time.perf_counter() - began)
    return best / rounds


def copied_per_second(size, threads):
    """Bytes per second that copies of `size` bytes (half read, half written) move."""
    part = size // 2 // threads
    if threads > 1 and part < SHORTEST_BESIDE_OTHERS:
        return threads * copied_per_second(size // threads, 1)
    pairs = [np.ones((2, part), np.uint8) for _ in range(threads)]
    call = seconds_of_moves(pairs[:1], 64) if part < SHORTEST_BESIDE_OTHERS else 0.0
    return 2 * part * threads / max(1e-9, seconds_of_moves(pairs, part) - call)


@functools.cache
def copy_speeds(threads):
    """Bytes per second by size of SIZES; a larger size is never faster than a smaller one."""
    speeds = [copied_per_second(size, threads) for size in SIZES]
    for i in reversed(range(len(speeds) - 1)):
        speeds[i] = max(speeds[i], speeds[i + 1])
    return speeds


def bandwidth(size, threads):
    """Bytes per second of copies that move this many bytes."""
    at = bisect.bisect_left(SIZES, size)
    return copy_speeds(threads)[min(at, len(SIZES) - 1)]


_peaks = {}


def peak(modules, dtype, threads):
    """Operations per second of the best product of any of the modules."""
    key = dtype, threads
    if key not in _peaks:
        _peaks[key] = max(best_product(m, dtype) for m in modules)
    return _peaks[key]


def best_product(module, dtype):
    best = 0.0
    for n in PRODUCTS:
        a = module.ones(n, n, dtype=getattr(module, dtype, module.float32))
        for _ in range(7):
            began = time.perf_counter()
            a @ a
            best = max(best, 2 * n**3 / (time.perf_counter() - began))
    return best


def least_seconds(work, modules, threads):
    """The time below which this machine cannot do the work; zero where nothing is known."""
    if work is None:
        return 0.0
    moving = work.traffic / bandwidth(work.traffic, threads)
    if not work.operations:
        return moving
    return max(moving, work.operations / peak(modules, work.dtype, threads))
