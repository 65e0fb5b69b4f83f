"""Functions whose sizes data decide, for a framework: with a sample and other arguments."""


def build(t):
    """name -> (function, arguments of the trace, arguments of another call)"""
    x = t.tensor([1, 0, 2, 3])
    v = t.tensor([0.5, -1.0, 2.0, -3.0])

    def ints(x):
        return t.tensor(x)

    def of_nonzero(x):
        found = x.nonzero()
        return found + 1, found.shape[0]

    def of_item(x, y):
        n = x.item()
        t._check(n > 2)
        t._check(n < 10)
        return t.zeros(n) + y, t.arange(n) * n

    def of_slice(x, y):
        n = x.item()
        t._check(n >= 0)
        t._check(n <= y.shape[0])
        return y[:n] * n, y[1:n]

    def of_mask(x):
        y = x[x > 0]
        return y.sum() / y.shape[0], y * 2, t.cat([y, y]).numel()

    def of_unique(x):
        u = t.unique(x)
        return u.numel() * u, t.unique(x, return_inverse=True)[1]

    def of_repeats(x, y):
        return t.repeat_interleave(y, x), y.masked_select(y > 0)

    def of_list(x):
        a, b, c, d = x.tolist()
        return a + b, c * d

    def of_select(x, y):
        return y[x.item()] * 2

    def known_by_check(x):
        n = x.item()
        t._check(n >= 0)
        t._check(n <= 8)
        return t.ones(n, 2) if n <= 9 else x

    def sum_of_counts(x, y):
        a, b = x.nonzero().shape[0], y.nonzero().shape[0]
        return t.ones(a + b) * (a * b)

    def of_counts(x):
        return t.bincount(x, minlength=2) + 1, t.argwhere(x)

    def of_where(x):
        (places,) = t.where(x > 0)
        return x[places], places.shape[0]

    def of_rows(x):
        rows, places, counts = t.unique(x, dim=0, return_inverse=True, return_counts=True)
        return rows * 2, places, counts

    def writes_by_mask(x):
        y = x.clone()
        y[x > 0] = 7.0
        return y, x[x > 0] + 1

    def equal_slices(x, y):
        n = x.item()
        t._check(n >= 0)
        t._check(n <= y.shape[0])
        return y[:n] + y[:n], y[1:n] * y[1:n]

    def guarded(x, y):
        n = x.item()
        t._check(n >= 0)
        shapes = t.fx.experimental.symbolic_shapes
        if shapes.guard_or_false(n == 1) or shapes.statically_known_true(n > 5):
            return y
        return y + (1 if shapes.guard_or_true(n < 9) else 2)

    return {
        "nonzero": (of_nonzero, (x,), (ints([0, 0, 5, 0]),)),
        "item": (of_item, (ints(4), v[:1]), (ints(9), v[1:2])),
        "slice": (of_slice, (ints(2), v), (ints(4), v * 2)),
        "mask": (of_mask, (v,), (v - 1,)),
        "unique": (of_unique, (x,), (ints([7, 7, 7, 1]),)),
        "repeats": (of_repeats, (x, v), (ints([0, 0, 1, 0]), -v)),
        "list": (of_list, (x,), (x + 5,)),
        "select": (of_select, (ints(1), v), (ints(3), v)),
        "counts": (of_counts, (x,), (ints([5, 0, 2, 5]),)),
        "where": (of_where, (v,), (v - 1,)),
        "rows": (of_rows, (x.view(2, 2),), (ints([[3, 4], [3, 4]]),)),
        "write by a mask": (writes_by_mask, (v,), (-v,)),
        "equal slices": (equal_slices, (ints(2), v), (ints(3), v * 2)),
        "known by a check": (known_by_check, (ints(3),), (ints(8),)),
        "guarded": (guarded, (ints(4), v), (ints(3), -v)),
        "two counts": (sum_of_counts, (x, v), (x * 0, v)),
    }
