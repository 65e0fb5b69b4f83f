"""The table of samples: values against NumPy, and the same bits for any number of threads."""

import facula
import numpy as np
import pytest
from samples import load_ops
from samples.checks import (
    assert_same_values,
    cases,
    each,
    enlarged,
    reference,
    run,
    tensors_of,
    to_array,
)
from samples.common import find, make_arguments, seed_of

OPS = load_ops()
REFERRED = [op for op in OPS if op.reference and not op.nondeterministic]
# Several operators of a few lines each are one case of the table, so names may repeat.
THREADED = [op for op in OPS if not op.nondeterministic and "float32" in op.dtype_names()]


@pytest.mark.parametrize(("op", "dtype"), **cases(REFERRED))
def test_values(op, dtype):
    """Each sample gives NumPy's values in the dtype under test."""
    for index, sample in op.numbered_samples(dtype):
        expected = reference(op, index, dtype)
        assert_same_values(run(facula, op, index, dtype), expected, op.tolerance, repr(sample))


@pytest.mark.parametrize("op", **each([op for op in OPS if not op.reference]))
def test_runs(op):
    """Operators that only the differential suite compares at least run on their samples."""
    for dtype in op.dtype_names():
        for index, _ in op.numbered_samples(dtype):
            run(facula, op, index, dtype)


@pytest.fixture
def threads():
    """Sets the number of threads; the number before comes back."""
    before = facula.get_num_threads()
    yield facula.set_num_threads
    facula.set_num_threads(before)


def _bits(sample, op, index):
    args, kwargs = make_arguments(facula, sample, "float32", seed_of(op, index))
    return [to_array(t).tobytes() for t in tensors_of(find(facula, op.name)(*args, **kwargs))]


@pytest.mark.parametrize("op", **each(THREADED))
def test_threads_change_no_bit(op, threads):
    """One, two and three threads give the same bits; sizes are large enough to be split."""
    for index, sample in enumerate(op.samples[:2]):
        large = enlarged(sample, 48) or sample
        try:
            threads(1)
            alone = _bits(large, op, index)
        except (RuntimeError, ValueError, IndexError, TypeError):
            large = sample  # its integer arguments do not fit the longer shapes
            alone = _bits(large, op, index)
        for count in (2, 3):
            threads(count)
            assert _bits(large, op, index) == alone, f"{count} threads: {large}"


def test_table_is_there():
    """An empty table would let every test above pass."""
    assert len(OPS) >= 20
    assert len(REFERRED) >= 10
    assert len({op.family for op in OPS}) >= 3
    assert np.isfinite([op.tolerance for op in OPS]).all()
