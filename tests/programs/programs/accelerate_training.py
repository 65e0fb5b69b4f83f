"""A training loop by accelerate: prepared objects, accumulated gradients, a saved state.

needs: accelerate
"""

import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

set_seed(3)
x = torch.randn(256, 10)
y = (x @ torch.randn(10, 3)).argmax(1)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 32)

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
for _ in range(4):
    for batch, target in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(batch), target)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
with tempfile.TemporaryDirectory() as folder:
    accelerator.save_state(folder)
    before = [p.detach().clone() for p in model.parameters()]
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    accelerator.load_state(folder)
restored = all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
with torch.no_grad():
    right = accelerator.gather_for_metrics((model(x).argmax(1) == y).float()).mean()
print(f"loss {loss.item():.4f} accuracy {right.item():.4f} restored {restored}")
