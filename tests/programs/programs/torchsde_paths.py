"""Paths of a stochastic differential equation and their gradient, by torchsde.

needs: torchsde
"""

import torch
import torchsde
from torch import nn


class Process(nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
        self.scale = nn.Parameter(torch.tensor(0.2))

    def f(self, t, y):
        return self.net(y) - y

    def g(self, t, y):
        return self.scale * torch.ones_like(y)


torch.manual_seed(0)
process = Process()
times = torch.linspace(0, 1, 6)
motion = torchsde.BrownianInterval(0.0, 1.0, size=(16, 2), entropy=7)
paths = torchsde.sdeint(process, torch.ones(16, 2), times, bm=motion, method="euler", dt=0.05)
loss = paths[-1].square().mean()
loss.backward()
print(f"end {paths[-1].mean().item():.4f} loss {loss.item():.4f} scale {process.scale.grad:.4f}")
