"""Statistics of batch norm against float64: rows are summed around a guess of the means."""

import facula
import numpy as np
import pytest

ROWS, CHANNELS = 4096, 19
SPACING = ROWS // 32  # rows so far apart give the guess


def noise():
    return np.random.default_rng(0).standard_normal((ROWS, CHANNELS))


def columns_of(change):
    """Noise whose every second channel is changed: the others go the same way with it."""
    x = noise()
    x[:, ::2] = change(x[:, ::2], np.arange(ROWS)[:, None])
    return x


# What every second channel is.
CHANNELS_OF = {
    "noise": lambda x, row: x,
    "far from zero": lambda x, row: x + 1000,
    "rising": lambda x, row: x * 0.01 + row,
    "guess far off": lambda x, row: x + 500 * (row % SPACING == 0),
    "guess off and far from zero": lambda x, row: x + 500 + 100 * (row % SPACING == 0),
    "constant": lambda x, row: x * 0 + 0.1,
    "zero": lambda x, row: x * 0,
    "small": lambda x, row: x * 1e-15,
}


@pytest.mark.parametrize("name", CHANNELS_OF)
@pytest.mark.parametrize("layout", ["rows", "channels last", "planes"])
def test_statistics_are_those_of_float64(name, layout):
    x = columns_of(CHANNELS_OF[name]).astype(np.float32)
    given = facula.from_numpy(x)
    if layout != "rows":
        given = given.reshape(4, 32, 32, CHANNELS).permute(0, 3, 1, 2)
        if layout == "planes":
            given = given.contiguous()
    _, mean, rstd = facula.native_batch_norm(given, None, None, None, None, True, 0.1, 1e-30)
    wide = x.astype(np.float64)
    spread = wide.std(0)
    rounding = np.abs(wide).max(0) * 2**-22
    assert np.all(np.abs(mean.numpy() - wide.mean(0)) <= rounding + spread * 2**-22)
    ours = 1 / rstd.numpy().astype(np.float64)
    assert np.all(np.abs(ours - spread) <= spread * 2**-18 + rounding * 2 + 2e-15)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("row", [0, SPACING, 5, ROWS - 1])
def test_one_number_that_is_not_finite_stays_in_its_channel(value, row):
    x = noise().astype(np.float32)
    x[row, 3] = value
    y = facula.nn.functional.batch_norm(facula.from_numpy(x), None, None, training=True).numpy()
    with np.errstate(invalid="ignore"):
        mean = x.astype(np.float64).mean(0)
    _, found, _ = facula.native_batch_norm(
        facula.from_numpy(x), None, None, None, None, True, 0.1, 1e-5
    )
    np.testing.assert_allclose(found.numpy(), mean, rtol=1e-5, atol=1e-6)
    assert np.isnan(y[:, 3]).any()
    assert np.isfinite(np.delete(y, 3, axis=1)).all()
