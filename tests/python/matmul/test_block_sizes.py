"""Blocks that suit other caches cut work otherwise and give the same bits."""

import os
import subprocess
import sys
from pathlib import Path

import facula
import pytest

PACKAGE = Path(facula.__file__).parents[1]
PROGRAM = """
import hashlib
import facula
from facula import nn
F = nn.functional
facula.manual_seed(1)

def show(name, *tensors):
    for t in tensors:
        print(name, hashlib.sha256(t.detach().contiguous().numpy().tobytes()).hexdigest()[:16])

for dtype in (facula.float32, facula.float64):
    for m, n, k in [(3, 70, 40), (300, 2500, 33), (500, 90, 600)]:
        a, b = facula.randn(m, k, dtype=dtype), facula.randn(k, n, dtype=dtype)
        show(f"product {m} {n} {k}", a @ b, a @ b.t().contiguous().t(), facula.addmm(b[:1], a, b))
for channels, side in [(16, 30), (64, 9)]:
    x = facula.randn(3, channels, side, side, requires_grad=True)
    w = facula.randn(channels, channels, 3, 3, requires_grad=True)
    y = F.conv2d(x, w, padding=1)
    y.sum().backward()
    show(f"convolution {channels}", y, x.grad, w.grad)
lstm = nn.LSTM(48, 96)
x = facula.randn(5, 40, 48, requires_grad=True)
y = lstm(x)[0]
y.sum().backward()
show("lstm", y, x.grad, *(p.grad for p in lstm.parameters()))
"""


def printed(caches):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "FACULA_CACHES": caches},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("caches", ["16K,128K,1024K", "64K,8192K,65536K"])
def test_results_are_the_same_for_any_caches(caches):
    wanted, got = printed(""), printed(caches)
    assert wanted.returncode == 0, wanted.stderr
    assert got.returncode == 0, got.stderr
    assert wanted.stdout.count("\n") == 30
    assert got.stdout == wanted.stdout


@pytest.mark.parametrize("caches", ["lots", "48K,1024K", "48K,0K,1K", "48,1024,32768"])
def test_sizes_that_are_none_are_named(caches):
    run = printed(caches)
    assert run.returncode != 0
    assert "FACULA_CACHES: expected the sizes of three caches" in run.stderr
    assert repr(caches).strip("'") in run.stderr
