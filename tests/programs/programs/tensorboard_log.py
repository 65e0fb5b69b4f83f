"""Scalars, histograms, pictures and a hyperparameter table, written and read by TensorBoard.

needs: tensorboard
"""

import tempfile

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.utils.tensorboard import SummaryWriter

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
x = torch.randn(64, 5)
y = x.sum(1, keepdim=True).sin()
with tempfile.TemporaryDirectory() as folder:
    with SummaryWriter(folder) as writer:
        for step in range(20):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            writer.add_scalar("loss", loss, step)
        for name, p in model.named_parameters():
            writer.add_histogram(name, p, 0)
        writer.add_image("picture", torch.rand(3, 4, 4), 0)
        writer.add_text("note", "done")
        writer.add_hparams({"lr": 0.05, "width": 8}, {"final": loss.item()}, run_name=".")
    events = EventAccumulator(folder, {"histograms": 0, "images": 0}).Reload()
    tags = events.Tags()
    losses = [event.value for event in events.Scalars("loss")]
    histogram = events.Histograms("0.weight")[0].histogram_value
print(
    f"losses {len(losses)} last {losses[-1]:.5f} histograms {len(tags['histograms'])} "
    f"sum {histogram.sum:.5f} images {len(tags['images'])}"
)
