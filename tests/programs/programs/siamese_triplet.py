"""An embedding trained with triplets, a sampler of its own and a loader with a collate function."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler, WeightedRandomSampler

torch.manual_seed(31)


class Points(Dataset):
    def __init__(self, n=240, classes=6):
        self.labels = torch.randint(classes, (n,))
        self.centres = torch.randn(classes, 10) * 2
        self.points = self.centres[self.labels] + torch.randn(n, 10)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"x": self.points[i], "label": int(self.labels[i]), "name": f"point {i}"}


class PairsOfClasses(Sampler):
    def __init__(self, labels, batch):
        self.labels, self.batch = labels, batch

    def __iter__(self):
        order = torch.randperm(len(self.labels)).tolist()
        order.sort(key=lambda i: int(self.labels[i]) % 2)
        for start in range(0, len(order), self.batch):
            yield order[start : start + self.batch]

    def __len__(self):
        return -(-len(self.labels) // self.batch)


def triplets(batch):
    x = torch.stack([item["x"] for item in batch])
    labels = torch.tensor([item["label"] for item in batch])
    same = labels[:, None].eq(labels)
    far = torch.cdist(x, x)
    positive = far.masked_fill(~same, -1).argmax(1)
    negative = far.masked_fill(same, float("inf")).argmin(1)
    return x, x[positive], x[negative]


data = Points()
# Distances do not see a shift, so that the last layers have no bias.
model = nn.Sequential(
    nn.Linear(10, 32), nn.PReLU(), nn.LayerNorm(32, bias=False), nn.Linear(32, 4, bias=False)
)
criterion = nn.TripletMarginLoss(margin=1.0)
optimizer = torch.optim.NAdam(model.parameters(), lr=5e-3)
loader = DataLoader(data, batch_sampler=PairsOfClasses(data.labels, 40), collate_fn=triplets)
for _ in range(5):
    for anchor, positive, negative in loader:
        loss = criterion(model(anchor), model(positive), model(negative))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
counts = torch.bincount(data.labels).float()
sampler = WeightedRandomSampler(1 / counts[data.labels], 60, replacement=True)
batch = next(iter(DataLoader(data, batch_size=60, sampler=sampler)))
print(batch["name"][:3], batch["x"].shape, batch["label"].dtype)
similar = nn.functional.cosine_similarity(model(batch["x"])[:-1], model(batch["x"])[1:]).mean()
print(f"loss {loss.item():.5f} labels {batch['label'].sum().item()} similar {similar.item():.5f}")
