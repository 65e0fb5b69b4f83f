"""Products of bytes by tiles (AMX, emulated where the processor has none) and by vectors: the sums
are integers, so that results are equal to the last bit.
"""

import os
import subprocess
import sys
from pathlib import Path

import facula
import pytest

PACKAGE = Path(facula.__file__).parents[1]
PROGRAM = """
import facula
facula.manual_seed(3)
ops = facula.ops.quantized

def activations(*sizes):
    return facula.quantize_per_tensor(facula.randn(*sizes), 0.05, 120, facula.quint8)

def weights(*sizes):
    scales = facula.linspace(0.01, 0.03, sizes[0]).double()
    zeros = facula.arange(sizes[0]) % 5 - 2
    return facula.quantize_per_channel(facula.randn(*sizes), scales, zeros, 0, facula.qint8)

# Rows around those of a tile and of a block, columns around a panel and four, depths around the
# 64 bytes of a tile's row.
for m, k, n in [(1, 1, 1), (3, 5, 7), (15, 63, 16), (16, 64, 17), (17, 65, 64), (33, 130, 65),
                (50, 260, 300), (2, 1000, 48)]:
    x, w, b = activations(m, k), weights(n, k), facula.randn(n)
    packed = ops.linear_prepack(w, b)
    print(m, k, n, ops.linear(x, packed, 0.1, 100).int_repr().tolist())
    print(m, k, n, ops.linear_dynamic(x.dequantize(), packed).tolist())
for groups, kernel in [(1, 3), (2, 3), (1, 1)]:
    x, w = activations(2, 6, 9, 7), weights(20, 6 // groups, kernel, kernel)
    where = ([1, 1], [kernel // 2] * 2, [1, 1], groups)
    packed = ops.conv2d_prepack(w, facula.randn(20), *where)
    print(groups, kernel, ops.conv2d(x, packed, 0.1, 100).int_repr().tolist())
"""


def printed(tiles):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={
            **os.environ,
            "PYTHONPATH": str(PACKAGE),
            "FACULA_AMX": tiles,
            "FACULA_DEBUG": "3",
        },
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout, run.stderr


def test_tiles_and_vectors_give_the_same_bits():
    if facula.backends.cpu.get_cpu_capability() != "AVX512":
        pytest.skip("tiles stand beside AVX-512, which this processor lacks")
    wanted, ways = printed("0")
    assert wanted and "bytes: vectors" in ways and "bytes: tiles" not in ways
    got, ways = printed("emulated")
    assert "bytes: tiles" in ways and "bytes: vectors" not in ways
    assert got == wanted
