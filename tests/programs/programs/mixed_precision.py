"""Autocast to bfloat16 on the CPU, a gradient scaler that is off.  agrees to: 0.02"""

import torch
import torch.nn as nn
from torch.amp import GradScaler, autocast

torch.manual_seed(5)
model = nn.Sequential(
    nn.Conv1d(4, 16, 5, padding=2), nn.GroupNorm(4, 16), nn.GELU(), nn.AdaptiveAvgPool1d(4),
    nn.Flatten(), nn.Linear(64, 3),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scaler = GradScaler("cuda", enabled=torch.cuda.is_available())
accumulate = 2
for step in range(16):
    labels = torch.randint(3, (32,))
    x = torch.randn(32, 4, 64) + torch.sin(
        torch.arange(64) * (labels[:, None, None] + 1).float() / 4
    )
    with autocast("cpu", dtype=torch.bfloat16):
        out = model(x)
        loss = nn.functional.cross_entropy(out, labels, label_smoothing=0.1) / accumulate
    assert out.dtype is torch.bfloat16
    scaler.scale(loss).backward()
    if (step + 1) % accumulate == 0:
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
print(f"loss {loss.item():.3f} norm {norm.item():.2f}")
