"""A U-Net with a ResNet encoder of segmentation-models-pytorch, dice and focal losses.

needs: segmentation_models_pytorch, timm, torchvision
"""

import segmentation_models_pytorch as smp
import torch

torch.manual_seed(0)
rows, columns = torch.meshgrid(torch.arange(64), torch.arange(64), indexing="ij")
radius = torch.tensor([10, 14, 18, 22])[:, None, None]
masks = ((rows - 32) ** 2 + (columns - 32) ** 2 < radius**2).float()[:, None]
images = masks + 0.3 * torch.randn(4, 3, 64, 64)
model = smp.Unet("resnet18", encoder_weights=None, classes=1, decoder_channels=(32, 16, 16, 8, 8))
dice = smp.losses.DiceLoss("binary")
focal = smp.losses.FocalLoss("binary")
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for _ in range(3):
    out = model(images)
    loss = dice(out, masks) + focal(out, masks)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
counts = smp.metrics.get_stats(out.sigmoid(), masks.long(), mode="binary", threshold=0.5)
score = smp.metrics.iou_score(*counts, reduction="micro")
print(f"loss {loss.item():.3f} iou {score.item():.3f}")
