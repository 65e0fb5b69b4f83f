"""A classifier trained by the Lion optimizer of lion-pytorch.  needs: lion_pytorch"""

import torch
from lion_pytorch import Lion
from torch import nn

torch.manual_seed(0)
x = torch.randn(128, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(6, 24), nn.GELU(), nn.Linear(24, 2))
optimizer = Lion(model.parameters(), lr=2e-3, weight_decay=1e-2)
for _ in range(40):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f} norm {model[0].weight.norm().item():.4f}")
