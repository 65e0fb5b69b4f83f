"""A vision transformer of vit-pytorch on handwritten digits.

needs: vit_pytorch, torchvision, sklearn
"""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from vit_pytorch import SimpleViT, ViT

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images[:256] / 16.0, dtype=torch.float32)[:, None]
labels = torch.tensor(digits.target[:256])
shared = dict(image_size=8, patch_size=2, num_classes=10, dim=32, depth=2, heads=2, channels=1)
figures = []
for model in (ViT(mlp_dim=64, dim_head=16, dropout=0.1, **shared), SimpleViT(mlp_dim=64, **shared)):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in range(3):
        for x, y in zip(images.split(64), labels.split(64), strict=True):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    figures.append(loss.item())
print(f"vit {figures[0]:.4f} simple {figures[1]:.4f}")
