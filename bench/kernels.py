"""Kernels on large tensors: the first sample of each row of the tests' table, enlarged."""

import sys
from pathlib import Path

from bench.harness import Case

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

from samples import load_ops  # noqa: E402
from samples.checks import enlarged  # noqa: E402
from samples.common import find, make_arguments, seed_of  # noqa: E402

FACTORS = (256, 64, 16, 4)
ROUNDS = 7


def largest(op, index):
    """A sample with its dimensions as much longer as still fits; None where it has no tensor."""
    sample = op.samples[index]
    grown = (enlarged(sample, factor) for factor in FACTORS if sample.tensors())
    return next((s for s in grown if s), None)


def case_of(op, index, sample):
    """Times one operator on one large sample in float32."""

    def make(m):
        args, kwargs = make_arguments(m, sample, "float32", seed_of(op, index))
        function = find(m, op.name)
        return lambda: function(*args, **kwargs)

    shapes = " ".join(str(list(t.shape)) for t in sample.tensors()[:2])
    return Case(f"{op.name} {shapes}"[:34], make, ROUNDS)


def all_cases():
    """One case for each operator that computes in float32."""
    found = []
    for op in load_ops():
        sample = largest(op, 0) if op.samples and "float32" in op.dtype_names() else None
        if sample:
            found.append(case_of(op, 0, sample))
    return found


CASES = all_cases()
