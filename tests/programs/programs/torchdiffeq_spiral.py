"""A spiral learned as a differential equation by torchdiffeq, with the adjoint method.

needs: torchdiffeq
"""

import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint

torch.manual_seed(0)
true_matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
times = torch.linspace(0.0, 3.0, 20)
start = torch.tensor([[2.0, 0.0]])


class Spiral(nn.Module):
    def forward(self, t, y):
        return (y**3) @ true_matrix


class Learned(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y**3)


with torch.no_grad():
    target = odeint(Spiral(), start, times, method="dopri5")
model = Learned()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
for _ in range(5):
    loss = (odeint_adjoint(model, start, times, method="rk4") - target).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"end {target[-1].norm().item():.4f} loss {loss.item():.4f}")
