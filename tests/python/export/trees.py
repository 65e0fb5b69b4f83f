"""Modules within modules, for a framework: what is exported and made a tree again."""


def build(framework):
    """name -> (module, args, kwargs)"""
    nn, torch = framework.nn, framework

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.register_buffer("shift", torch.ones(4))

        def forward(self, x, scale=2):
            return torch.relu(self.linear(x)) * scale, x + self.shift

    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Block(), Block()
            self.rest = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
            self.weight = torch.ones(4)

        def forward(self, x, *, y):
            a, b = self.first(x)
            c, d = self.second(a + y)
            return {"result": self.rest(c) + b + self.weight, "other": d}

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return self.linear(torch.sin(self.linear(x)))

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
            self.second.weight = self.first.weight

        def forward(self, x):
            unused, kept = (self.second(self.first(x)) + 1).split(2, 1)
            return kept

    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(4)

        def forward(self, x):
            return self.norm(x) * 2

    x, y = torch.arange(8.0).reshape(2, 4), torch.ones(2, 4)
    return {
        "nested": (Nested(), (x,), {"y": y}),
        "twice": (Twice(), (x,), {}),
        "tied": (Tied(), (x,), {}),
        "normed": (Normed(), (x,), {}),
    }
