"""Augmented pictures and masks by albumentations, through a DataLoader to a small network.

needs: albumentations, cv2
"""

import albumentations as A
import numpy as np
import torch
from albumentations.pytorch import ToTensorV2
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Discs(Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 12

    def __getitem__(self, index):
        rows, columns = np.mgrid[:24, :24]
        mask = ((rows - 12) ** 2 + (columns - 10) ** 2 < (4 + index % 4) ** 2).astype(np.uint8)
        noise = np.random.RandomState(index).randint(0, 60, (24, 24, 3))
        image = (mask[..., None] * 180 + noise).astype(np.uint8)
        out = self.transform(image=image, mask=mask)
        return out["image"], out["mask"].float()


torch.manual_seed(0)
transform = A.Compose(
    [
        A.HorizontalFlip(p=0.5),
        A.RandomBrightnessContrast(p=0.8),
        A.RandomCrop(20, 20),
        A.Normalize(),
        ToTensorV2(),
    ],
    seed=7,
)
loader = DataLoader(Discs(transform), batch_size=4)
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
total = 0.0
for _ in range(3):
    for images, masks in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(images)[:, 0], masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += images.sum().item()
print(f"loss {loss.item():.4f} seen {total:.1f}")
