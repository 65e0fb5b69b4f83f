"""Saving and loading: one large tensor, and many small ones, in each format."""

import itertools
import os
import tempfile

from bench.harness import Case

_numbers = itertools.count()


def _large(m):
    return {"weight": m.ones(16 << 20)}


def _small(m):
    return {f"layer{i}.weight": m.ones(16, 16) for i in range(2000)}


def _path():
    folder = os.path.join(tempfile.gettempdir(), "facula_bench")
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, f"{os.getpid()}_{next(_numbers) % 8}.pt")


def _saving(obj, **options):
    def make(m):
        value, path = obj(m), _path()
        return lambda: m.save(value, path, **options)

    return make


def _loading(obj, zipped=True, **options):
    def make(m):
        path = _path()
        m.save(obj(m), path, _use_new_zipfile_serialization=zipped)
        return lambda: m.load(path, **options)

    return make


_OLD = {"_use_new_zipfile_serialization": False}
_RUNS = {
    "save 64 MB": _saving(_large),
    "save 64 MB, old format": _saving(_large, **_OLD),
    "load 64 MB": _loading(_large),
    "load 64 MB, old format": _loading(_large, zipped=False),
    "load 64 MB, mapped": _loading(_large, mmap=True),
    "save 2000 tensors": _saving(_small),
    "save 2000 tensors, old format": _saving(_small, **_OLD),
    "load 2000 tensors": _loading(_small),
    "load 2000 tensors, trusted": _loading(_small, weights_only=False),
    "load 2000 tensors, mapped": _loading(_small, mmap=True),
    "load 2000 tensors, old format": _loading(_small, zipped=False),
}
CASES = [Case(name, make, rounds=5, family="files") for name, make in _RUNS.items()]
