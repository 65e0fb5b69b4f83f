"""Calls of facula.masked for the tests with and without PyTorch: (name, arguments, options).

`lib` is facula or torch; data and masks are the same in both.
"""

DATA = {
    "float32": [[[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], [[0.5, 2.0, 2.0], [7.0, 1.5, 0.25]]],
    "float64": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
    "int32": [[1, 2, 3], [4, 5, 6]],
    "int64": [[3, 1, 2], [6, 5, 4]],
    "uint8": [[3, 1, 2], [6, 5, 4]],
    "complex64": [[1 + 1j, 2 - 1j, 3j], [4 + 0j, 5j, 6 - 2j]],
}
# One row that counts in part, one that counts not at all; a mask that is repeated; none.
MASKS = {
    "full": [[True, False, True], [False, False, False]],
    "row": [False, True, True],
    "numbers": [[1, 0, 2], [0, 1, 0]],
    "none": None,
}
FLOATING = ("float32", "float64")
COMPLEX = (*FLOATING, "complex64")
REAL = (*FLOATING, "int32", "int64", "uint8")
ANY = tuple(DATA)

REDUCTIONS = [
    ("sum", ANY),
    ("prod", ANY),
    ("mean", COMPLEX),
    ("amax", REAL),
    ("amin", REAL),
    ("var", ANY),
    ("std", ANY),
    ("norm", COMPLEX),
    ("logsumexp", COMPLEX),
]
ALONG = [
    ("cumsum", ANY),
    ("cumprod", ANY),
    ("softmax", FLOATING),
    ("log_softmax", FLOATING),
    ("softmin", FLOATING),
    ("median", FLOATING),
    ("argmax", REAL),
    ("argmin", REAL),
]
DIMS = (None, 1, -1, (0, 1), [0], ())

# (name, dtypes, arguments after the input, options)
CALLS = [
    *[(name, dtypes, (dim,), {}) for name, dtypes in REDUCTIONS if name != "norm" for dim in DIMS],
    *[(name, dtypes, (1,), {"keepdim": True}) for name, dtypes in REDUCTIONS if name != "norm"],
    *[
        (name, dtypes, (), {"dim": 0, "dtype": "float64"})
        for name, dtypes in REDUCTIONS
        if name != "norm"
    ],
    *[(name, dtypes, (dim,), {}) for name, dtypes in ALONG for dim in (0, -1)],
    *[("norm", COMPLEX, (order, 1), {}) for order in (0, 1, 2, -1, 3.5, float("inf"))],
    ("norm", FLOATING, (-float("inf"), 1), {"keepdim": True}),
    ("norm", COMPLEX, (), {}),
    *[("normalize", COMPLEX, (order, 1), {}) for order in (1, 2.0, float("inf"))],
    ("normalize", FLOATING, (2.0, 0), {"eps": 3.0}),
    *[(name, ANY, (1, flag), {}) for name in ("var", "std") for flag in (True, False)],
    *[(name, FLOATING, (1,), {"correction": c}) for name in ("var", "std") for c in (0, 0.5, 5)],
    ("sum", ANY, (1,), {"dtype": "float16"}),
    ("median", FLOATING, (), {"keepdim": True}),
    ("median", FLOATING, (None,), {}),
    ("argmax", REAL, (), {}),
]

# (label, call, class of the error); x is float32 of shape (2, 3), mask of bool and the same shape
ERRORS = [
    ("mask of more dimensions", lambda m, x, k: m.sum(x, mask=k[None]), IndexError),
    ("mask that does not fit", lambda m, x, k: m.sum(x, mask=k[:, :2]), RuntimeError),
    ("dimension out of range", lambda m, x, k: m.sum(x, 2, mask=k), IndexError),
    ("dimension twice", lambda m, x, k: m.sum(x, (0, 0), mask=k), RuntimeError),
    ("mean of integers", lambda m, x, k: m.mean(x.long(), 1, mask=k), ValueError),
    ("mean in integers", lambda m, x, k: m.mean(x, 1, mask=k, dtype=k.long().dtype), ValueError),
    ("amax of bool", lambda m, x, k: m.amax(k, 1, mask=k), NotImplementedError),
    ("amax of complex", lambda m, x, k: m.amax(x * 1j, 1, mask=k), TypeError),
    ("var of bool", lambda m, x, k: m.var(k, 1, mask=k), NotImplementedError),
    ("unbiased and correction", lambda m, x, k: m.var(x, 1, True, correction=1), AssertionError),
    ("no number as order", lambda m, x, k: m.norm(x, "fro", 1, mask=k), TypeError),
    ("median of nothing in integers", lambda m, x, k: m.median(x.long(), 1, mask=k), ValueError),
    ("argmax of two dimensions", lambda m, x, k: m.argmax(x, (0, 1), mask=k), TypeError),
]


def tensors(lib, dtype, mask):
    """(data, mask) of these names."""
    x = lib.tensor(DATA[dtype], dtype=getattr(lib, dtype))
    return x, None if MASKS[mask] is None else lib.tensor(MASKS[mask])


def called(lib, name, dtype, mask, args, options):
    """The result of one call."""
    x, k = tensors(lib, dtype, mask)
    options = dict(options)
    if "dtype" in options:
        options["dtype"] = getattr(lib, options["dtype"])
    return getattr(lib.masked, name)(x, *args, mask=k, **options)
