"""Embeddings by pytorch-metric-learning: mined triplets, losses with parameters, accuracy.

needs: pytorch_metric_learning
"""

import torch
from pytorch_metric_learning import distances, losses, miners, reducers
from torch import nn

torch.manual_seed(0)
centres = torch.randn(6, 12)
labels = torch.arange(120) % 6
points = centres[labels] + 0.6 * torch.randn(120, 12)
model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 8))
miner = miners.TripletMarginMiner(margin=0.3, type_of_triplets="semihard")
triplet = losses.TripletMarginLoss(
    0.3, distance=distances.CosineSimilarity(), reducer=reducers.ThresholdReducer(low=0)
)
arc = losses.ArcFaceLoss(6, 8)
contrast = losses.NTXentLoss(0.2)
optimizer = torch.optim.Adam([*model.parameters(), *arc.parameters()], lr=5e-3)
for _ in range(12):
    out = model(points)
    a, b = triplet(out, labels, miner(out, labels)), contrast(out, labels)
    c = arc(out, labels)
    optimizer.zero_grad()
    (a + b + 0.1 * c).backward()
    optimizer.step()
print(f"triplet {a.item():.4f} contrast {b.item():.4f} arc {c.item():.4f}")
