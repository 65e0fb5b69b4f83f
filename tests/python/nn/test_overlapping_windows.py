"""max_pool2d over windows of every geometry, beside a plain walk over each window."""

import itertools

import facula
import pytest
from facula.nn import functional as F

# kernel, stride, padding, dilation of rows and columns
GEOMETRIES = {
    "overlapping": ((3, 3), (2, 2), (1, 1), (1, 1)),
    "side by side": ((3, 3), (1, 1), (1, 1), (1, 1)),
    "wide steps": ((2, 5), (3, 4), (1, 2), (1, 1)),
    "dilated": ((3, 2), (1, 2), (1, 1), (2, 3)),
    "pairs": ((2, 2), (2, 2), (0, 0), (1, 1)),
}


def window(x, i, j, kernel, stride, padding, dilation):
    """Value and place of a window's maximum: the first of equal ones, the last NaN."""
    best, place = -float("inf"), None
    for a, b in itertools.product(range(kernel[0]), range(kernel[1])):
        h = i * stride[0] - padding[0] + a * dilation[0]
        w = j * stride[1] - padding[1] + b * dilation[1]
        if not (0 <= h < len(x) and 0 <= w < len(x[0])):
            continue
        v = x[h][w]
        if place is None or v > best or v != v:
            best, place = v, h * len(x[0]) + w
    return best, place


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "uint8", "int64"])
@pytest.mark.parametrize("width", [13, 40])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_maxima_and_their_places(name, width, dtype):
    dtype = getattr(facula, dtype)
    facula.manual_seed(0)
    x = facula.randint(0, 4, (2, 14, width)).to(dtype)
    if dtype.is_floating_point:
        x[facula.rand(x.shape) < 0.1] = -float("inf")
        x[facula.rand(x.shape) < 0.02] = float("nan")
    kernel, stride, padding, dilation = GEOMETRIES[name]
    values, places = F.max_pool2d(x, kernel, stride, padding, dilation, return_indices=True)
    for c, rows in enumerate(x.tolist()):
        for i, j in itertools.product(*map(range, values.shape[1:])):
            want = window(rows, i, j, *GEOMETRIES[name])
            found = values[c, i, j].item(), places[c, i, j].item()
            assert str(found) == str(want), (c, i, j)
