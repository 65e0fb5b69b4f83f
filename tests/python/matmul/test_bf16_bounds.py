"""Products of bfloat16 whose operands end where memory does: nothing behind them is touched."""

import os
import subprocess
import sys
from pathlib import Path

import facula
import pytest

PACKAGE = Path(facula.__file__).parents[1]
PROGRAM = """
import ctypes, mmap
import facula
import numpy as np

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
kept = []

def at_end(tensor):
    # The tensor's values, the last one in front of a page that nobody may touch.
    size = tensor.numel() * 2
    room = -(-size // PAGE) * PAGE
    memory = mmap.mmap(-1, room + PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert libc.mprotect(ctypes.c_void_p(address + room), PAGE, 0) == 0
    kept.append(memory)
    values = np.frombuffer(memory, np.int16, tensor.numel(), room - size)
    placed = facula.from_numpy(values).view(facula.bfloat16).view(tensor.shape)
    placed.copy_(tensor)
    return placed

facula.manual_seed(2)
count = 0
for k in (1, 15, 31, 33, 64, 100, 1000, 2049):
    for n in (1, 15, 17, 33, 97, 130):
        for m in (1, 2, 3, 4, 5, 8, 9, 33):
            a, b = facula.randn(m, k).bfloat16(), facula.randn(k, n).bfloat16()
            wanted = a.double() @ b.double()
            bound = 2**-7 * float(wanted.abs().max()) + 1e-6
            for left in (at_end(a), at_end(a.t().contiguous()).t()):
                for right in (at_end(b), at_end(b.t().contiguous()).t()):
                    out = at_end(facula.zeros(m, n).bfloat16())
                    facula.mm(left, right, out=out)
                    assert float((out.double() - wanted).abs().max()) <= bound, (m, n, k)
                    count += 1
print(count)
"""


@pytest.mark.parametrize("pairs", ["0", "1"])
def test_nothing_behind_the_operands_is_touched(pairs):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "FACULA_PAIRS": pairs},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == str(8 * 6 * 8 * 4)
