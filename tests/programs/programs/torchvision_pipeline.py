"""Transforms, datasets and a MobileNet of torchvision on generated pictures.

needs: torchvision
"""

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import models, transforms, utils
from torchvision.transforms import functional


class Discs(Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 24

    def __getitem__(self, index):
        rows, columns = np.mgrid[:40, :40]
        inside = (rows - 20) ** 2 + (columns - 20) ** 2 < (6 + 8 * (index % 2)) ** 2
        picture = np.stack([inside * 200, inside * 90, rows * 4], 2).astype(np.uint8)
        return self.transform(Image.fromarray(picture)), index % 2


torch.manual_seed(0)
transform = transforms.Compose(
    [
        transforms.RandomCrop(36),
        transforms.RandomHorizontalFlip(),
        transforms.Resize(32),
        transforms.ToTensor(),
        transforms.Normalize((0.4, 0.3, 0.3), (0.3, 0.2, 0.2)),
    ]
)
loader = DataLoader(Discs(transform), batch_size=8)
model = models.mobilenet_v3_small(num_classes=2, width_mult=0.5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
grid = utils.make_grid(x, nrow=4, normalize=True)
turned = functional.rotate(x, 30.0).mean().item()
print(f"loss {loss.item():.4f} grid {grid.mean().item():.4f} turned {turned:.4f}")
