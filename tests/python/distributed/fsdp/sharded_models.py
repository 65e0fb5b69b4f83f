"""What the tests of sharded modules share: a small model, batches of ranks, some steps."""

import facula
from facula import nn
from facula.distributed.tensor import DTensor
from facula.utils.checkpoint import checkpoint


class Block(nn.Module):
    """A residual block; parts of it are used in several ways by the tests."""

    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)

    def forward(self, x):
        return x + self.down(facula.relu(self.up(x)))


class Model(nn.Module):
    def __init__(self, width=5, blocks=2, checkpointed=None):
        super().__init__()
        self.checkpointed = checkpointed
        self.first = nn.Linear(3, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.last = nn.Linear(width, 2)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            if self.checkpointed is None:
                x = block(x)
            else:
                x = checkpoint(block, x, use_reentrant=self.checkpointed)
        return self.last(self.norm(x))


def made(seed=0, **options):
    net = Model(**options)
    g = facula.Generator().manual_seed(seed)
    with facula.no_grad():
        for p in net.parameters():
            p.copy_(facula.randn(p.shape, generator=g))
    return net


def batch(rank, size, rows=8):
    g = facula.Generator().manual_seed(7)
    x, y = facula.randn(rows, 3, generator=g), facula.randn(rows, 2, generator=g)
    n = rows // size
    return x[rank * n : rank * n + n], y[rank * n : rank * n + n]


def whole(tensors):
    return [t.full_tensor() if isinstance(t, DTensor) else t.detach().clone() for t in tensors]


def steps(net, x, y, count=3, step=None, optimizer=facula.optim.AdamW):
    """Losses and parameters of some steps."""
    opt, losses = optimizer(net.parameters(), lr=0.05), []
    for _ in range(count):
        opt.zero_grad()
        if step is None:
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
        else:
            loss = step(net, x, y)
        losses.append(loss.item())
        opt.step()
    return losses, whole(net.parameters())


def same(a, b):
    return a[0] == b[0] and all(map(facula.equal, a[1], b[1])) and len(a[1]) == len(b[1])
