"""Super resolution by sub-pixel convolution, on handwritten digits."""

from math import log10
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.init as init
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset

DATA = Path(__file__).resolve().parents[3] / "examples" / "data" / "digits.csv.gz"


class Pictures(Dataset):
    def __init__(self, images):
        self.images = images

    def __getitem__(self, index):
        target = self.images[index]
        small = nn.functional.interpolate(
            target[None], scale_factor=0.5, mode="bicubic", align_corners=False
        )
        return small[0], target

    def __len__(self):
        return len(self.images)


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 32, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(32, 16, (3, 3), (1, 1), (1, 1))
        self.conv3 = nn.Conv2d(16, upscale_factor**2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv2.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv3.weight)

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        return self.pixel_shuffle(self.conv3(x))


torch.manual_seed(123)
table = np.loadtxt(DATA, delimiter=",", dtype=np.float32)[:400]
images = torch.from_numpy(table[:, :64].reshape(-1, 1, 8, 8)) / 16
training = DataLoader(Pictures(images[:320]), batch_size=16, shuffle=True)
testing = DataLoader(Pictures(images[320:]), batch_size=20)
model = Net(upscale_factor=2)
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=0.001)
for epoch in range(1, 5):
    epoch_loss = 0
    for small, target in training:
        optimizer.zero_grad()
        loss = criterion(model(small), target)
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
    print(f"===> Epoch {epoch} Avg. Loss: {epoch_loss / len(training):.4f}")
with torch.no_grad():
    psnr = [10 * log10(1 / criterion(model(s), t).item()) for s, t in testing]
print(f"loss {epoch_loss / len(training):.6f} psnr {sum(psnr) / len(psnr):.4f}")
