"""A normalizing flow of zuko that learns two moons.  needs: zuko"""

import torch
import zuko

torch.manual_seed(0)
angle = torch.rand(256) * torch.pi
side = torch.randint(2, (256,))
moons = torch.stack([torch.cos(angle) + side, torch.sin(angle) * (1 - 2 * side) + 0.5 * side], 1)
moons = moons + 0.05 * torch.randn(256, 2)
figures = []
for flow in (
    zuko.flows.NSF(2, transforms=2, hidden_features=(24, 24)),
    zuko.flows.MAF(2, transforms=2, hidden_features=(24, 24)),
):
    optimizer = torch.optim.Adam(flow.parameters(), 5e-3)
    for _ in range(15):
        loss = -flow().log_prob(moons).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        figures.append((loss.item(), flow().sample((64,)).std().item()))
print(" ".join(f"loss {loss:.3f} spread {spread:.3f}" for loss, spread in figures))
