"""A trainer and evaluator of ignite: events, metrics, a schedule and early stopping.

needs: ignite
"""

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping, LinearCyclicalScheduler
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, RunningAverage
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
x = torch.randn(240, 6)
y = (x @ torch.randn(6, 3)).argmax(1)
loader = DataLoader(TensorDataset(x[:192], y[:192]), batch_size=24, shuffle=True)
held_out = DataLoader(TensorDataset(x[192:], y[192:]), batch_size=16)
model = nn.Sequential(nn.Linear(6, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Linear(20, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
trainer = create_supervised_trainer(model, optimizer, criterion)
metrics = {"accuracy": Accuracy(), "loss": Loss(criterion), "confusion": ConfusionMatrix(3)}
evaluator = create_supervised_evaluator(model, metrics=metrics)
RunningAverage(output_transform=lambda out: out).attach(trainer, "average")
trainer.add_event_handler(
    Events.ITERATION_STARTED, LinearCyclicalScheduler(optimizer, "lr", 0.02, 0.1, 16)
)
stop = EarlyStopping(3, lambda engine: -engine.state.metrics["loss"], trainer)
evaluator.add_event_handler(Events.COMPLETED, stop)


@trainer.on(Events.EPOCH_COMPLETED)
def evaluate(engine):
    evaluator.run(held_out)
    print(engine.state.epoch, evaluator.state.metrics["loss"])


trainer.run(loader, max_epochs=6)
found = evaluator.state.metrics
print(
    f"average {trainer.state.metrics['average']:.4f} accuracy {found['accuracy']:.4f} "
    f"loss {found['loss']:.4f} diagonal {found['confusion'].diag().tolist()}"
)
