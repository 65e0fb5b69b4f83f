"""Any byte but 0 is true in memory of dtype bool, as another dtype or library may leave there."""

import facula
import pytest

BYTES = [0, 1, 2, 128, 255, 0, 64]


def _odd():
    """Bools whose bytes are neither 0 nor 1."""
    return facula.tensor(BYTES, dtype=facula.uint8).view(facula.bool)


def _plain():
    return facula.tensor([b != 0 for b in BYTES])


def _values():
    return facula.arange(7.0)


def _put(x, mask):
    x[mask] = 9.0
    return x


# Each takes bools; the result must not tell odd bytes from plain ones.
OPERATORS = {
    "tolist": lambda b: b,
    "item": lambda b: b[3].item(),
    "clone": lambda b: b.clone().view(facula.uint8),
    "copy_": lambda b: facula.empty(7, dtype=facula.bool).copy_(b).view(facula.uint8),
    "to uint8": lambda b: b.to(facula.uint8),
    "to float": lambda b: b.float(),
    "strided to int": lambda b: b[::2].int(),
    "logical_not": lambda b: b.logical_not(),
    "bitwise_not": lambda b: ~b,
    "and": lambda b: b & b,
    "or": lambda b: b | b,
    "xor": lambda b: b ^ facula.ones(7, dtype=facula.bool),
    "eq": lambda b: b == facula.ones(7, dtype=facula.bool),
    "lt": lambda b: b < facula.ones(7, dtype=facula.bool),
    "mul": lambda b: b * _values(),
    "where": lambda b: facula.where(b, _values(), -_values()),
    "masked_select": lambda b: facula.masked_select(_values(), b),
    "masked_fill": lambda b: _values().masked_fill(b, 7.0),
    "masked_scatter": lambda b: _values().masked_scatter(b, -_values()),
    "nonzero": lambda b: facula.nonzero(b),
    "index": lambda b: _values()[b],
    "index_put": lambda b: _put(_values(), b),
    "scatter_add": lambda b: b.clone().scatter_add(0, facula.zeros(7, dtype=facula.int64), b),
    "sum": lambda b: b.sum(),
    "sum of columns": lambda b: facula.stack([b, b]).view(2, 7).sum(0),
    "count_nonzero": lambda b: facula.count_nonzero(b),
    "prod": lambda b: b[1:4].prod(),
    "all": lambda b: b.all(),
    "any": lambda b: b.any(),
    "amax": lambda b: b.amax(),
    "aminmax": lambda b: facula.aminmax(b)[0],
    "max": lambda b: facula.max(b, 0)[1],
    "argmin": lambda b: b.int().argmin(),
    "cumsum": lambda b: b.cumsum(0),
    "cummax": lambda b: b.cummax(0)[1],
    "sort": lambda b: facula.sort(b, stable=True)[1],
    "mode": lambda b: b.mode()[0],
    "unique": lambda b: facula.unique(b),
    "unique of rows": lambda b: facula.unique(facula.stack([b, ~b]), dim=0),
    "equal": lambda b: facula.equal(b, _plain()),
    "bincount": lambda b: facula.bincount(b.int()),
}


def _shown(result):
    return result.tolist() if isinstance(result, facula.Tensor) else result


@pytest.mark.parametrize("name", OPERATORS)
def test_odd_bytes_are_true(name):
    operator = OPERATORS[name]
    assert _shown(operator(_odd())) == _shown(operator(_plain()))
