"""No call from Python ends the process, hangs or shows its insides, whatever it is given."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import facula
import facula.nn.functional as F
import pytest
from bad_calls import asks_for_much

WORKER = Path(__file__).parents[1] / "bad_calls.py"
MOST_CRASHES = 40
SANITIZER = re.compile(r"runtime error:|ERROR: \w+Sanitizer")
OUR_FRAME = re.compile(r"#\d+ 0x\w+ (in .*/(?:src|python/bindings)/\S+:\d+)")


def _worker(*options, **environment):
    root = str(Path(facula.__file__).parents[1])
    path = os.pathsep.join([root, str(WORKER.parent)])
    env = {**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "", **environment}
    command = [sys.executable, str(WORKER), *map(str, options)]
    return subprocess.run(command, env=env, capture_output=True, text=True, errors="replace")


def _sanitizer_report(lines):
    """What a sanitizer found, and the first two frames in our sources; empty without a report."""
    found = [line.strip() for line in lines if SANITIZER.search(line)]
    if not found:
        return ""
    return " ".join([found[0], *[f for line in lines for f in OUR_FRAME.findall(line)][:2]])


def _ending(process):
    if process.returncode == -signal.SIGALRM:
        return "hung"
    lines = [line for line in process.stderr.splitlines() if line.strip()]
    return f"ended with {process.returncode} {_sanitizer_report(lines) or ' '.join(lines[-2:])}"


def _faults(progress, cases, only=""):
    """Every call that ended the worker or showed an internal error."""
    found, start = [], 0
    while len(found) < MOST_CRASHES:
        common = ["--progress", progress, "--cases", cases, "--only", only]
        process = _worker(*common, "--start", start)
        lines = process.stdout.splitlines()
        found += [line for line in lines if line.startswith("fault:")]
        if lines and lines[-1] == "done":
            return found
        assert progress.exists(), f"the worker did not start: {process.stderr}"
        number = int(progress.read_text())
        what = _worker(*common, "--show", number).stdout.strip() or "a call that cannot be shown"
        ending = _ending(process)
        if ending != "hung" or not asks_for_much(what):
            found.append(f"call {number} {ending}: {what}")
        start = number + 1
    return found


BIG, MOST = 2**62, 2**63 - 1
HUGE = [0, BIG, BIG]  # no elements, and strides beyond int64


def one_far():
    """A matrix of one element with strides whose sum is beyond int64."""
    return facula.ones(2, 3).as_strided((1, 1), (MOST, BIG))


# Calls whose sizes, strides or offsets leave int64 on the way, and what PyTorch makes of them: an
# exception, or the shape of the result.
OVERFLOWS = {
    "empty, strides": (lambda: facula.empty(HUGE), RuntimeError),
    "empty, elements before the zero": (lambda: facula.empty(BIG, BIG, 0), RuntimeError),
    "empty, elements after the zero": (lambda: facula.empty(BIG, 0, BIG), (BIG, 0, BIG)),
    "empty, channels last": (
        lambda: facula.empty(0, 1, BIG, BIG, memory_format=facula.channels_last),
        RuntimeError,
    ),
    "empty on meta": (lambda: facula.empty(HUGE, device="meta"), RuntimeError),
    "empty_permuted": (lambda: facula.empty_permuted(HUGE, [2, 0, 1]), (0, BIG, BIG)),
    "expand": (lambda: facula.empty(0).expand(BIG, BIG, 0), RuntimeError),
    "permute": (
        lambda: facula.empty(0, 1, 1).expand(0, BIG, BIG).permute(1, 2, 0),
        RuntimeError,
    ),
    "add a view without elements, whose offset is huge": (
        lambda: facula.rand(1, 1)
        .as_strided((1, 1), (2**63 - 1, 2**62))
        .narrow(1, 1, 0)
        .add(facula.rand(1)),
        (1, 0),
    ),
    "add to huge strides": (lambda: facula.empty(0, 1, 1).expand(0, BIG, BIG) + 1, RuntimeError),
    "view": (lambda: facula.empty(0).view(0, BIG, BIG), (0, BIG, BIG)),
    "resize_": (lambda: facula.empty(0).resize_(HUGE), RuntimeError),
    "adaptive_avg_pool3d": (
        lambda: F.adaptive_avg_pool3d(facula.ones(1, 2, 3, 3, 3), 2**31),
        RuntimeError,
    ),
    "adaptive_max_pool2d": (
        lambda: F.adaptive_max_pool2d(facula.ones(1, 2, 5, 6), (MOST, 2)),
        RuntimeError,
    ),
    "adaptive_max_pool3d": (
        lambda: F.adaptive_max_pool3d(facula.ones(2, 3, 4, 5, 5), (2**31, 2**31, 4)),
        RuntimeError,
    ),
    "upsample_nearest1d": (
        lambda: facula.ops.aten.upsample_nearest1d(facula.ones(2, 3, 4), [BIG], 1.0),
        RuntimeError,
    ),
    "_upsample_nearest_exact3d": (
        lambda: facula.ops.aten._upsample_nearest_exact3d(
            facula.ones(2, 3, 4, 5, 5), [BIG] * 3, None, None, None
        ),
        RuntimeError,
    ),
    "as_strided, strides of one element": (
        lambda: facula.ones(2, 3).as_strided((1, 1), (MOST, 2)),
        (1, 1),
    ),
    "as_strided, strides of no element": (
        lambda: facula.ones(2, 3).as_strided((0, 2), (MOST, MOST)),
        (0, 2),
    ),
    "diagonal of one element": (lambda: one_far().diagonal(), (1,)),
    "tril_ of one element": (lambda: one_far().tril_(), (1, 1)),
    "fill_diagonal_ of one element": (lambda: one_far().fill_diagonal_(2), (1, 1)),
    "rot90, derivative": (
        lambda: facula.autograd.functional.vjp(
            lambda x: facula.rot90(x, -MOST - 1), facula.ones(2, 3), facula.ones(2, 3)
        )[1],
        (2, 3),
    ),
    "fractional_max_pool2d": (
        lambda: F.fractional_max_pool2d(facula.ones(3, 7, 9), 2, (MOST, MOST)),
        RuntimeError,
    ),
    "pad, circular": (
        lambda: F.pad(facula.ones(3, 4), (-MOST - 1, -MOST - 1), mode="circular"),
        RuntimeError,
    ),
    "native_group_norm": (
        lambda: facula.ops.aten.native_group_norm(
            facula.ones(2, 3, 4), None, None, -MOST - 1, 2, 7, 1, 1e-5
        ),
        RuntimeError,
    ),
    "norm_except_dim": (
        lambda: facula.norm_except_dim(facula.empty(0, 1, 1).expand(HUGE)),
        (0, 1, 1),
    ),
    "as_strided beyond": (lambda: facula.ones(2, 3).as_strided((2, 1), (MOST, 2)), RuntimeError),
    "add to strides of one element": (
        lambda: facula.ones(2, 3).as_strided((1, 1), (MOST, 2)) + 1,
        (1, 1),
    ),
    "add to strides of no element": (
        lambda: facula.ones(2, 3).as_strided((0, 2), (MOST, MOST)) + 1,
        (0, 2),
    ),
    "as_strided_backward": (
        lambda: facula.ops.aten.as_strided_backward(
            facula.ones(3, 3), [0, 0], [2, 1], 3, [1, 1], [1, 1], -(2**63)
        ),
        RuntimeError,
    ),
    "diagonal_backward": (
        lambda: facula.ops.aten.diagonal_backward(facula.ones(3), HUGE, 7, 1, 0),
        RuntimeError,
    ),
    "slice_backward": (
        lambda: facula.ops.aten.slice_backward(facula.ones(3, 3), HUGE, BIG, 3, 3, 1),
        RuntimeError,
    ),
    "value_selecting_reduction_backward": (
        lambda: facula.ops.aten.value_selecting_reduction_backward(
            facula.ones(3, 3), -1, facula.ones(3, 3, dtype=facula.int64), HUGE, True
        ),
        RuntimeError,
    ),
    "randint": (lambda: facula.randint(BIG, HUGE), RuntimeError),
    "randint out": (lambda: facula.randint(5, HUGE, out=facula.ones(3)), RuntimeError),
    "split": (lambda: facula.split(facula.ones(3, 3), MOST, 1)[0], (3, 3)),
    "unsafe_split": (lambda: facula.unsafe_split(facula.ones(3, 3), MOST, 1)[0], (3, 3)),
    "split_with_sizes": (
        lambda: facula.ones(3).split_with_sizes([0, BIG, BIG]),
        RuntimeError,
    ),
    "repeat_interleave": (
        lambda: facula.repeat_interleave(facula.ones(2, 3), MOST),
        RuntimeError,
    ),
    "constant_pad_nd": (
        lambda: facula.constant_pad_nd(facula.ones(2, 3), [-1, BIG]),
        RuntimeError,
    ),
    "chunk of nothing": (lambda: facula.chunk(facula.ones(0, 2), BIG), RuntimeError),
    "tensor_split": (lambda: facula.tensor_split(facula.ones(7, 2), BIG), RuntimeError),
    "slice": (lambda: facula.ones(3, 5)[::BIG], (1, 5)),
    "slice_copy": (
        lambda: facula.ops.aten.slice_copy(facula.ones(3, 5), 0, 0, 9, BIG),
        (1, 5),
    ),
    "roll": (lambda: facula.roll(facula.ones(4, 2), MOST, 0), (4, 2)),
    "rot90": (lambda: facula.rot90(facula.ones(3, 5), 1, [-(2**63), 1]), IndexError),
    "unfold padding": (
        lambda: F.unfold(facula.ones(1, 1, 4, 4), 2, dilation=2, padding=MOST, stride=2),
        RuntimeError,
    ),
    "unfold stride": (
        lambda: F.unfold(facula.ones(1, 1, 4, 4), 2, stride=BIG),
        (1, 4, 1),
    ),
    "fold": (lambda: F.fold(facula.ones(1, 4, 6), [MOST, 4], 2), RuntimeError),
    "histogram": (lambda: facula.histogram(facula.ones(4), MOST), RuntimeError),
    "histogramdd": (lambda: facula.histogramdd(facula.ones(4, 2), [MOST, MOST]), RuntimeError),
    "vander": (lambda: facula.vander(facula.ones(3), BIG), RuntimeError),
    "cov": (lambda: facula.cov(facula.ones(3, 5), correction=-(2**63)), (3, 3)),
    "LazyConv1d": (lambda: facula.nn.LazyConv1d(-1, [2**32, 2**32]), RuntimeError),
    "ctc_loss": (
        lambda: F.ctc_loss(
            facula.ones(6, 2, 4), facula.ones(6, dtype=facula.int64), [6, 4], [BIG, BIG]
        ),
        RuntimeError,
    ),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_sizes_beyond_int64(name):
    call, expected = OVERFLOWS[name]
    if isinstance(expected, tuple):
        assert tuple(call().shape) == expected
    else:
        with pytest.raises(expected):
            call()


def test_bad_arguments(tmp_path, full):
    """Drawn arguments for every operator, sample, method, index and class."""
    found = _faults(tmp_path / "progress", 400 if full else 12)
    assert not found, "\n".join(found)
