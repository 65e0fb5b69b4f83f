"""Samples of the operators of Python that src/ops/elementwise/bitwise.cpp has as methods."""

from samples.common import Op, Sample, T

WHOLE = T(2, 3, low=0, high=100)
COUNTS = T(2, 3, low=0, high=3)
CALLS = [Sample(WHOLE, COUNTS), Sample(WHOLE, T(3, low=0, high=3)), Sample(WHOLE, 2)]


def _dunders(names, dtypes, calls=CALLS):
    return [
        Op(f"Tensor.__{form}__", calls, dtypes=dtypes, grad=False)
        for name in names
        for form in (name, "i" + name)
    ]


OPS = [
    *_dunders(("and", "or", "xor"), "int"),
    *_dunders(("and", "or", "xor"), "bool", CALLS[:2]),
    *_dunders(("lshift", "rshift"), "int"),
    Op("is_nonzero", [Sample(T()), Sample(T(1, 1))], dtypes="float int bool complex", grad=False),
    Op("Tensor.item", [Sample(T()), Sample(T(1, 1))], dtypes="float int bool complex", grad=False),
    Op(
        "allclose",
        [
            Sample(T(2, 3), T(2, 3)),
            Sample(T(2, 3), T(2, 3), 10.0),
            Sample(T(2, 3), T(3), rtol=0.0, atol=9.0, equal_nan=True),
        ],
        dtypes="float int bool complex",
        grad=False,
    ),
]
