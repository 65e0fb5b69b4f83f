"""A U-Net on generated discs, with weights initialised by class and a dice loss."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)


class DoubleConv(nn.Sequential):
    def __init__(self, inside, outside):
        super().__init__(
            nn.Conv2d(inside, outside, 3, padding=1, bias=False),
            nn.BatchNorm2d(outside),
            nn.ReLU(inplace=True),
            nn.Conv2d(outside, outside, 3, padding=1, bias=False),
            nn.InstanceNorm2d(outside, affine=True),
            nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.inc = DoubleConv(1, width)
        self.down = nn.Sequential(nn.MaxPool2d(2), DoubleConv(width, 2 * width))
        self.bottom = nn.Sequential(nn.MaxPool2d(2), DoubleConv(2 * width, 2 * width))
        self.up1 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.conv1 = DoubleConv(4 * width, width)
        self.up2 = nn.ConvTranspose2d(width, width, kernel_size=2, stride=2)
        self.conv2 = DoubleConv(2 * width, width)
        self.outc = nn.Conv2d(width, 1, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down(x1)
        x = self.conv1(torch.cat([x2, self.up1(self.bottom(x2))], dim=1))
        x = self.up2(x)
        x = F.pad(x, [0, x1.size(3) - x.size(3), 0, x1.size(2) - x.size(2)])
        return self.outc(self.conv2(torch.cat([x1, x], dim=1)))


def dice_loss(logits, target, eps=1e-6):
    probability = logits.sigmoid().flatten(1)
    target = target.flatten(1)
    overlap = 2 * (probability * target).sum(-1)
    return 1 - (overlap / (probability.sum(-1) + target.sum(-1)).clamp(min=eps)).mean()


grid = torch.stack(torch.meshgrid(torch.arange(24), torch.arange(24), indexing="ij"))
centres, radii = torch.rand(48, 2, 1, 1) * 24, torch.rand(48, 1, 1) * 6 + 3
masks = ((grid - centres).pow(2).sum(1) < radii**2).unsqueeze(1).float()
loader = DataLoader(TensorDataset(masks + torch.randn(masks.shape) * 0.5, masks), 12, shuffle=True)
model = UNet().to(memory_format=torch.channels_last)
for module in model.modules():
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.9)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=1)
for _ in range(4):
    for x, y in loader:
        out = model(x.to(memory_format=torch.channels_last))
        loss = F.binary_cross_entropy_with_logits(out, y) + dice_loss(out, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.1)
        optimizer.step()
    scheduler.step(-loss)
print(f"loss {loss.item():.4f} lr {optimizer.param_groups[0]['lr']:.6f}")
