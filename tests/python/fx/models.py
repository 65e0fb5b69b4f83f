"""Programs that are traced, for facula and for PyTorch."""

import math
import operator


def build(torch):
    """(name, module or function, inputs) for a framework."""
    nn = torch.nn

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.p = nn.Linear(3, 4), nn.Parameter(torch.ones(4))
            self.seq = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))
            self.register_buffer("scale", torch.full((4,), 2.0))

        def forward(self, x, y=2, *, z=None):
            a = torch.relu(self.lin(x) + self.p).view(-1, 4) * y
            a = a * self.scale - 1.5 + (3 - a) / (a**2 + 1)
            c = a[0:1, None]
            first, second = torch.chunk(a, 2)
            return {"out": self.seq(a), "c": (c, -first, [second, a.shape[0]])}

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2)

        def forward(self, x):
            out = nn.functional.gelu(self.norm(self.conv(x)), approximate="tanh")
            return torch.flatten(x + out, 1).mean(dim=1, keepdim=True).to(torch.float64)

    def function(x, y):
        z = x.size(0) + torch.cat([x, y], dim=0).sum()
        return (z > 0) & (z != 1) | ~(z < 2), abs(x).type_as(y), x @ y.t()

    def constants(x):
        return x + torch.ones(2), x.clamp(min=-math.inf, max=1.0), operator.neg(x)

    def functions_in_python(x, y):
        # Their arguments are recorded in one form, however they were given.
        z = torch.einsum("ij,jk", [x, y]) + torch.einsum("ij,jk->ik", x, y)
        z = torch.tensordot(z, y, ([1], [0])) + torch.tensordot(x, dims=1, b=y)
        return torch.cdist(x2=z, x1=x, p=1.0), torch.split(z, 1), torch.broadcast_tensors(x, z)

    return [
        ("mixed", Mixed(), (torch.randn(2, 3),)),
        ("residual", Residual().eval(), (torch.randn(2, 2, 4, 4),)),
        ("function", function, (torch.randn(2, 2), torch.randn(2, 2))),
        ("functions in Python", functions_in_python, (torch.randn(2, 2), torch.randn(2, 2))),
        ("constants", constants, (torch.randn(2),)),
    ]
