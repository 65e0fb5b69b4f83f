"""Backward of norms: saved statistics that do not fit the input raise before they are read."""

import facula
import pytest

X, WRONG, RIGHT = facula.ones(1, 17, 2), facula.ones(3, 0, 1), facula.ones(1, 1, 1)
LAYER = facula.ops.aten.native_layer_norm_backward.default
RMS = facula.ops.aten._fused_rms_norm_backward.default
CALLS = {
    "layer norm, mean": lambda: LAYER(X, X, [17, 2], WRONG, RIGHT, None, None, [True] * 3),
    "layer norm, rstd": lambda: LAYER(X, X, [17, 2], RIGHT, WRONG, None, None, [True] * 3),
    "rms norm": lambda: RMS(X, X, [17, 2], WRONG, None, [True, False]),
}


@pytest.mark.parametrize("name", CALLS)
def test_statistics_that_do_not_fit_raise(name):
    with pytest.raises(RuntimeError, match=r"of shape \[1, 1, 1\]; got \[3, 0, 1\]"):
        CALLS[name]()


def test_statistics_that_fit_are_taken():
    grad = LAYER(X, X, [17, 2], RIGHT, RIGHT, None, None, [True, False, False])[0]
    assert grad.shape == X.shape


@pytest.mark.parametrize("shape", ([8, 0], [0]))
def test_statistics_of_rows_without_elements(shape):
    x = facula.zeros(8, 0, dtype=facula.float64)
    rows = [1, 1] if len(shape) == 2 else [8, 1]
    _, mean, rstd = facula.ops.aten.native_layer_norm.default(x, shape, None, None, 1e-5)
    _, rms = facula.ops.aten._fused_rms_norm.default(x, shape, None, 1e-5)
    assert mean.tolist() == facula.zeros(rows).tolist()
    assert rstd.isnan().all() and rms.isnan().all() and list(rms.shape) == rows
