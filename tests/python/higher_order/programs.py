"""Functions and modules with branches, loops and scans, for a framework."""


def functions(torch):
    """name -> (function, arguments): `make_fx` traces them."""
    hops = torch._higher_order_ops

    def cond(p, a, b, *operands):
        return torch.cond(p, a, b, operands)

    def gradient(x):
        y = cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos(), x)
        return torch.autograd.grad(y.sum(), x)[0]

    def nested(p, x):
        return cond(
            p,
            lambda x: cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, x),
            lambda x: x * 2,
            x,
        )

    def loop(i, x):
        return hops.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (i, x))

    yes, ones, x = torch.tensor(True), torch.ones(3), torch.arange(12.0).reshape(4, 3)
    return {
        "cond": (lambda x: cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos(), x), (ones,)),
        "operand_unused": (
            lambda p, x, y: cond(p, lambda x, y: x.sin() + 1, lambda x, y: x.cos(), x, y),
            (yes, ones, ones),
        ),
        "results_in_a_nest": (
            lambda p, x: cond(p, lambda x: {"a": (x + 1, x * 2)}, lambda x: {"a": (x - 1, -x)}, x),
            (yes, ones),
        ),
        "nested": (nested, (yes, ones)),
        "gradient": (gradient, (torch.ones(3, requires_grad=True),)),
        "while_loop": (loop, (torch.tensor(0), ones)),
        "scan": (lambda x, c: hops.scan(lambda c, x: (c + x, c * 2), c, x), (x, ones)),
        "map": (lambda x, y: hops.map(lambda x, y: x * y + 1, x, y), (x, ones)),
    }


def modules(torch):
    """name -> (module, arguments): `export` exports them."""
    nn, hops = torch.nn, torch._higher_order_ops

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, p, x):
            return torch.cond(p, lambda x: self.linear(x), lambda x: x.cos(), (x,))

    class Loop(nn.Module):
        def forward(self, i, x):
            return hops.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (i, x))

    class Scan(nn.Module):
        def forward(self, x, c):
            return hops.scan(lambda c, x: (c + x, c * 2), c, x)

    class Map(nn.Module):
        def forward(self, x, c):
            return hops.map(lambda x, y: x * y + 1, x, c)

    ones, x = torch.ones(3), torch.arange(12.0).reshape(4, 3)

    class Widened(nn.Module):
        def forward(self, a, b):
            return torch.ops.higher_order.out_dtype(torch.ops.aten.mm.default, torch.int32, a, b)

    hops.out_dtype  # noqa: B018  (defines the operator)
    small = torch.full((2, 3), 100, dtype=torch.int8)
    return {
        "widened": (Widened(), (small, small.t().contiguous())),
        "branches": (Branches(), (torch.tensor(True), x)),
        "loop": (Loop(), (torch.tensor(0), x)),
        "scan": (Scan(), (x, ones)),
        "map": (Map(), (x, ones)),
    }
