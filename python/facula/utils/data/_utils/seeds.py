"""Random generators of workers: their seeds, their states, and NumPy's when it is imported."""

from __future__ import annotations

import random
import sys

import facula

_MASK = 0xFFFFFFFF


class _Hash:
    """The running hash of NumPy's SeedSequence: a multiplier that changes with each word."""

    def __init__(self, start, step):
        self.multiplier, self.step = start, step

    def __call__(self, word):
        word ^= self.multiplier
        self.multiplier = self.multiplier * self.step & _MASK
        word = word * self.multiplier & _MASK
        return word ^ word >> 16


def _mix(x, y):
    mixed = (0xCA01F9DD * x - 0x4973F715 * y) & _MASK
    return mixed ^ mixed >> 16


def numpy_seed(base_seed, worker_id):
    """The seed of NumPy's generator in a worker: four words.

    They are what numpy.random.SeedSequence generates (M. E. O'Neill's seed_seq_fe, 2015) from the
    worker's number and the halves of the loader's seed.

    Example:
        >>> numpy_seed(12345, 0)[0] == numpy_seed(12345, 1)[0]
        False
    """
    entropy = (worker_id, base_seed & _MASK, base_seed >> 32, 0)
    hash_in = _Hash(0x43B0D7E5, 0x931E8875)
    pool = [hash_in(word) for word in entropy]
    for source in range(4):
        for target in range(4):
            if source != target:
                pool[target] = _mix(pool[target], hash_in(pool[source]))
    hash_out = _Hash(0x8B51F9DD, 0x58F38DED)
    return [hash_out(word) for word in pool]


class _SeedsNumpy:
    """An importer that seeds numpy.random when it is imported, which takes too long to do now."""

    def __init__(self, seed):
        self.seed = seed

    def find_spec(self, name, path=None, target=None):
        if name != "numpy.random":
            return None
        from importlib.machinery import PathFinder

        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute, seed = spec.loader.exec_module, self.seed

            def execute_and_seed(module):
                execute(module)
                module.seed(seed)

            spec.loader.exec_module = execute_and_seed
        return spec


def seed_worker(base_seed, worker_id):
    """Seed facula's, Python's and NumPy's generators of a worker process."""
    seed = base_seed + worker_id
    random.seed(seed)
    facula.manual_seed(seed)
    words = numpy_seed(base_seed, worker_id)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(words)
    else:
        sys.meta_path.insert(0, _SeedsNumpy(words))


def _facula_state():
    return bytes(memoryview(facula.get_rng_state().untyped_storage()))


def _numpy_state():
    if "numpy.random" not in sys.modules:
        return None
    kind, words, *rest = sys.modules["numpy.random"].get_state()
    return (kind, words.tobytes(), *rest)


_READERS = {"facula": _facula_state, "python": random.getstate, "numpy": _numpy_state}


def random_states():
    """The states of the generators of this process, by library."""
    return {name: read() for name, read in _READERS.items()}


def set_random_states(states):
    """Set states that random_states() gave."""
    words = bytearray(states["facula"])
    facula.set_rng_state(facula.frombuffer(words, dtype=facula.uint8))
    random.setstate(states["python"])
    if states["numpy"] is not None:
        import numpy

        kind, words, *rest = states["numpy"]
        numpy.random.set_state((kind, numpy.frombuffer(words, "uint32"), *rest))


class ChangedStates:
    """Tells which generators drew numbers since it was last asked."""

    def __init__(self):
        self.last = {}

    def __call__(self):
        """The states that differ from the last ones, by library."""
        now = random_states()
        changed = {name: state for name, state in now.items() if self.last.get(name, 0) != state}
        self.last = now
        return changed
