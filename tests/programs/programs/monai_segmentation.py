"""Segmentation of generated volumes by monai: dictionary transforms, a U-Net, dice.

needs: monai
"""

import numpy as np
import torch
from monai.data import CacheDataset, DataLoader
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import Compose, EnsureChannelFirstd, EnsureTyped, RandFlipd, ScaleIntensityd
from monai.utils import set_determinism

set_determinism(0)
items = []
for index in range(6):
    grid = np.mgrid[:16, :16, :16] - 8
    label = ((grid**2).sum(0) < (3 + index % 3) ** 2).astype(np.float32)
    image = label + 0.3 * np.random.RandomState(index).randn(16, 16, 16).astype(np.float32)
    items.append({"image": image, "label": label})
keys = ["image", "label"]
transform = Compose(
    [
        EnsureChannelFirstd(keys, channel_dim="no_channel"),
        ScaleIntensityd("image"),
        RandFlipd(keys, prob=0.5, spatial_axis=0),
        EnsureTyped(keys),
    ]
)
loader = DataLoader(CacheDataset(items, transform, progress=False), batch_size=2)
model = UNet(3, 1, 2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1)
criterion = DiceCELoss(to_onehot_y=True, softmax=True)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(4):
    for batch in loader:
        loss = criterion(model(batch["image"]), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
model.eval()
metric = DiceMetric(include_background=False)
with torch.no_grad():
    for batch in loader:
        out = sliding_window_inference(batch["image"], (16, 16, 16), 2, model)
        metric(out.argmax(1, keepdim=True), batch["label"])
print(f"loss {loss.item():.4f} dice {metric.aggregate().item():.4f}")
