"""Training that is stopped, saved and resumed, against training that went on."""

import copy
import io
import random
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, SequentialLR


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(
            nn.Linear(6, 24), nn.BatchNorm1d(24), nn.SiLU(), nn.Dropout(0.2), nn.Linear(24, 1)
        )
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=0.05, momentum=0.9, nesterov=True
        )
        warm = LambdaLR(self.optimizer, lambda step: (step + 1) / 5)
        cosine = CosineAnnealingLR(self.optimizer, T_max=20)
        self.scheduler = SequentialLR(self.optimizer, [warm, cosine], milestones=[5])

    def step(self):
        x = torch.randn(32, 6)
        y = (x[:, :1] * x[:, 1:2]).sin()
        loss = nn.functional.huber_loss(self.model(x), y, delta=0.5)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        return loss.item()

    def save(self, file):
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
                "rng": torch.get_rng_state(),
                "numpy": np.random.get_state()[1].tolist(),
            },
            file,
        )

    def load(self, file):
        checkpoint = torch.load(file, map_location="cpu", weights_only=True)
        print(self.model.load_state_dict(checkpoint["model"], strict=True))
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.scheduler.load_state_dict(checkpoint["scheduler"])
        torch.set_rng_state(checkpoint["rng"])


seed_everything(11)
trainer = Trainer()
for _ in range(10):
    trainer.step()
path = Path(tempfile.mkdtemp()) / "checkpoint.pt"
trainer.save(path)
straight = [trainer.step() for _ in range(10)]
resumed_trainer = Trainer()
resumed_trainer.load(path)
resumed = [resumed_trainer.step() for _ in range(10)]
assert straight == resumed, (straight, resumed)
buffer = io.BytesIO()
torch.save(trainer.model, buffer)
buffer.seek(0)
whole = torch.load(buffer, weights_only=False).eval()
twin = copy.deepcopy(trainer.model).eval()
x = torch.randn(4, 6)
assert torch.equal(whole(x), twin(x))
lr = trainer.scheduler.get_last_lr()[0]
print(f"loss {straight[-1]:.6f} lr {lr:.6f}")
