"""Kernels beside PyTorch: out= of another dtype, results of nothing, lists that are too long."""

import os
import subprocess
import sys
from pathlib import Path

import facula
import facula.nn.functional as F
import pytest

F64, I64 = facula.float64, facula.int64


def ones(*sizes, dtype=facula.float32):
    return facula.ones(sizes, dtype=dtype)


def room(*sizes, dtype=F64):
    return facula.empty(sizes, dtype=dtype)


OTHER_OUT = {
    "vector_norm": lambda: facula.linalg.vector_norm(ones(3), out=room()),
    "vector_norm, dtype=": lambda: facula.linalg.vector_norm(
        ones(3), dtype=F64, out=room(dtype=facula.float32)
    ),
    "norm": lambda: facula.norm(ones(3), out=room()),
    "cumsum, dtype=": lambda: facula.cumsum(
        ones(3), 0, dtype=F64, out=room(3, dtype=facula.float32)
    ),
    "logcumsumexp": lambda: facula.logcumsumexp(ones(3), 0, out=room(3)),
    "mv": lambda: facula.mv(ones(2, 3), ones(3), out=room(2)),
    "mm": lambda: facula.mm(ones(2, 3), ones(3, 2), out=room(2, 2)),
    "dot": lambda: facula.dot(ones(3), ones(3), out=room()),
    "addmv": lambda: facula.addmv(ones(2), ones(2, 3), ones(3), out=room(2)),
    "addmm": lambda: facula.addmm(ones(2, 2), ones(2, 3), ones(3, 2), out=room(2, 2)),
    "bmm": lambda: facula.bmm(ones(1, 2, 3), ones(1, 3, 2), out=room(1, 2, 2)),
}


@pytest.mark.parametrize("name", OTHER_OUT)
def test_out_of_another_dtype(name):
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        OTHER_OUT[name]()


def test_out_that_would_grow_over_its_input():
    v = facula.arange(6.0)
    with pytest.raises(RuntimeError, match="shares a part of its memory"):
        facula.neg(v, out=v[:-1])


# Lists that no memory holds; each runs in a process of its own, which may have little.
TOO_LONG = {
    "unbind": "facula.ones(1).expand(2**62).unbind()",
    "unbind of nothing": "facula.zeros(2**40, 0).unbind()",
    "split": "facula.zeros(2**40, 0).split(1)",
    "chunk": "facula.zeros(2**40, 0).chunk(2**40)",
    "unsafe_chunk": "facula.zeros(2, 0).unsafe_chunk(2**40, 1)",
    "tensor_split": "facula.zeros(2**40, 0).tensor_split(2**40)",
    "list": "list(facula.zeros(2**40, 0))",
    "combinations": "facula.combinations(facula.ones(100), 50)",
    "combinations, repeated": "facula.combinations(facula.ones(100), 60, with_replacement=True)",
}
LIMITED = """
import facula, os, resource
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (1 << 29)
if "ASAN_OPTIONS" not in os.environ:  # the sanitizer reserves terabytes of addresses
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
try:
    CALL
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize("name", TOO_LONG)
def test_raises_before_memory_is_taken(name):
    env = {**os.environ, "PYTHONPATH": str(Path(facula.__file__).parents[1])}
    code = LIMITED.replace("CALL", TOO_LONG[name])
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-300:]
    assert done.stdout
    assert "not enough memory" not in done.stdout


unfold_backward = facula.ops.aten.unfold_backward
BAD_UNFOLDS = {
    "step 0": (ones(2, 3, 4), [0, 0, 0], -1, 0, 0),
    "step below 0": (ones(2, 2), [3], 0, 2, -1),
    "size below 0": (ones(2, 2), [3], 0, -2, 1),
    "size beyond the dimension": (ones(1, 4), [3], 0, 4, 1),
    "windows of another number": (ones(3, 2), [3], 0, 2, 1),
    "windows of another size": (ones(2, 3), [3], 0, 2, 1),
    "dimensions": (ones(2), [3], 0, 2, 1),
}


@pytest.mark.parametrize("name", BAD_UNFOLDS)
def test_unfold_backward(name):
    with pytest.raises(RuntimeError):
        unfold_backward(*BAD_UNFOLDS[name])


def test_unfold_backward_sums_windows():
    assert unfold_backward(ones(2, 2), [3], 0, 2, 1).tolist() == [1, 2, 1]


COMBINATIONS = [
    (3, 2, False, [[0, 1], [0, 2], [1, 2]]),
    (2, 2, True, [[0, 0], [0, 1], [1, 1]]),
    (1, 3, True, [[0, 0, 0]]),
    (4, 4, False, [[0, 1, 2, 3]]),
    (2, 3, False, []),
]


@pytest.mark.parametrize(("n", "r", "repeated", "rows"), COMBINATIONS)
def test_combinations(n, r, repeated, rows):
    found = facula.combinations(facula.arange(n), r, with_replacement=repeated)
    assert tuple(found.shape) == (len(rows), r)
    assert found.tolist() == rows


VALUES = {
    "cumsum into int64": (lambda: facula.cumsum(ones(3), 0, out=room(3, dtype=I64)), [1, 2, 3]),
    "cumsum of complex into float": (
        lambda: facula.cumsum(
            ones(2, dtype=facula.complex64), 0, out=room(2, dtype=facula.float32)
        ),
        [1.0, 2.0],
    ),
    "addbmm of nothing": (
        lambda: facula.addbmm(ones(2, 2), ones(0, 2, 3), ones(0, 3, 2), beta=2),
        [[2.0, 2.0], [2.0, 2.0]],
    ),
    "addbmm to nothing": (
        lambda: facula.addbmm(ones(2, 0), ones(3, 2, 5), ones(3, 5, 0)),
        [[], []],
    ),
    "linalg.vander of a scalar": (
        lambda: facula.linalg.vander(facula.tensor(3.0), N=2),
        [[1.0, 3.0]],
    ),
    "arange between floats": (lambda: facula.arange(-2.5, 3, 1.5, dtype=I64), [-2, -1, 0, 1]),
    "arange below a float": (lambda: facula.arange(1.5, out=room(0, dtype=I64)), [0, 1]),
    "arange by a half": (lambda: facula.arange(0, 2, 0.5, dtype=I64), [0, 0, 0, 0]),
    "diff of order 0": (lambda: facula.diff(ones(3), n=0, prepend=ones(2)), [1.0, 1.0, 1.0]),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    call, wanted = VALUES[name]
    assert call().tolist() == wanted


def test_strides_of_an_empty_nonzero():
    assert facula.nonzero(facula.zeros(3, 2)).stride() == (1, 0)
    assert facula.nonzero(ones(2, 2)).stride() == (1, 4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_huber_loss_of_a_scalar_target(reduction):
    target = facula.tensor(2.0, dtype=F64)
    assert F.huber_loss(ones(3), target, reduction=reduction).dtype == facula.float32


@pytest.mark.parametrize("dtype", [facula.float32, F64, facula.bfloat16])
@pytest.mark.parametrize("function", [facula.logaddexp, facula.logaddexp2])
def test_a_sum_of_powers_is_no_negative_zero(function, dtype):
    zeros = facula.tensor([-0.0, -0.0, -0.0, 0.0] * 8, dtype=dtype)
    far = facula.tensor([float("-inf"), -200.0, -2000.0, -200.0] * 8, dtype=dtype)
    assert not function(zeros, far).signbit().any()
    assert not function(far, zeros).signbit().any()


def test_a_conversion_to_the_same_order_of_strides_copies_nothing():
    """Gaps between elements are kept where nothing else is asked to change."""
    gaps = facula.ones(4, 6)[::2, ::2]
    assert gaps.float(memory_format=facula.contiguous_format) is gaps
    assert gaps.to(facula.float32, memory_format=facula.contiguous_format) is gaps
    images = facula.ones(2, 3, 4, 4)
    last = images.to(memory_format=facula.channels_last)
    assert last.stride() == (48, 1, 12, 3)
    assert last.to(memory_format=facula.channels_last) is last
    assert last.to(memory_format=facula.contiguous_format).stride() == images.stride()
    single = facula.ones(2, 1, 4, 4)
    assert single.to(memory_format=facula.channels_last).stride() == (16, 1, 4, 1)
