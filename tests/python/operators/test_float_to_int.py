"""Numbers with a fraction to integers: what does not fit gives what PyTorch gives on x86."""

import math

import facula
import pytest

INF, NAN = math.inf, math.nan
VALUES = [INF, -INF, NAN, 3e9, -3e9, 1e20, 300.0, -1.0, -129.0, 70000.0, -2.5, 256.5, 2.0**63]
LOW32, LOW64 = -(2**31), -(2**63)
WANTED = {
    "int32": [LOW32, LOW32, LOW32, LOW32, LOW32, LOW32, 300, -1, -129, 70000, -2, 256, LOW32],
    "int16": [0, 0, 0, 0, 0, 0, 300, -1, -129, 4464, -2, 256, 0],
    "uint16": [0, 0, 0, 0, 0, 0, 300, 65535, 65407, 4464, 65534, 256, 0],
    "int8": [0, 0, 0, 0, 0, 0, 44, -1, 127, 112, -2, 0, 0],
    "uint8": [0, 0, 0, 0, 0, 0, 44, 255, 127, 112, 254, 0, 0],
    "int64": [LOW64, LOW64, LOW64, 3 * 10**9, -3 * 10**9, LOW64, 300, -1, -129, 70000, -2, 256,
              LOW64],
    "uint64": [0, 2**63, 2**63, 3 * 10**9, 2**64 - 3 * 10**9, 0, 300, 2**64 - 1, 2**64 - 129,
               70000, 2**64 - 2, 256, 2**63],
}  # fmt: skip


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("dtype", WANTED)
def test_what_does_not_fit_is_as_on_x86(kind, dtype):
    x = facula.tensor(VALUES, dtype=getattr(facula, kind))
    to = getattr(facula, dtype)
    assert x.to(to).tolist() == WANTED[dtype]
    assert [t.to(to).item() for t in x.unbind()] == WANTED[dtype]
    assert x.repeat(9).to(to).tolist() == WANTED[dtype] * 9
    assert x.repeat_interleave(2)[::2].to(to).tolist() == WANTED[dtype]


def test_half_types_are_converted_alike():
    for kind in (facula.float16, facula.bfloat16):
        x = facula.tensor([INF, -INF, NAN, 12.5], dtype=kind)
        assert x.to(facula.int32).tolist() == [LOW32, LOW32, LOW32, 12]
