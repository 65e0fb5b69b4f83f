"""Products of matrices of 8-bit floats, beside PyTorch's."""

import facula
import pytest
import torch

SCALES = {
    "one": lambda t: (t.tensor(2.0), t.tensor(3.0)),
    "rows": lambda t: (t.arange(1.0, 5.0)[:, None] / 4, t.tensor([[1.0, 2.0, 0.5]])),
}


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("out", [None, "float32", "bfloat16", "float16", "float8_e5m2"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_scaled_mm(scales, out, dtype):
    found = []
    for t in (facula, torch):
        a = (t.arange(64.0).view(4, 16) % 7 - 3).to(getattr(t, dtype))
        b = (t.arange(48.0).view(3, 16) % 5 - 2).to(t.float8_e4m3fn).t()
        bias = t.tensor([1.0, -2.0, 0.5], dtype=t.bfloat16 if out == "bfloat16" else t.float32)
        kind = getattr(
            t.nn.functional.ScalingType, {"one": "TensorWise", "rows": "RowWise"}[scales]
        )
        scale_a, scale_b = SCALES[scales](t)
        result = t.nn.functional.scaled_mm(
            a, b, scale_a, kind, scale_b, kind, bias=bias,
            output_dtype=None if out is None else getattr(t, out),
        )  # fmt: skip
        found.append((str(result.dtype).split(".")[1], result.float().tolist()))
    assert found[0] == found[1]
