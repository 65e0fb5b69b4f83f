"""Scores of a classifier by torchmetrics.  needs: torchmetrics, lightning_utilities"""

import torch
import torchmetrics
from torchmetrics.classification import MulticlassAccuracy, MulticlassConfusionMatrix

torch.manual_seed(2)
logits, labels = torch.randn(3, 64, 5), torch.randint(5, (3, 64))
metrics = torchmetrics.MetricCollection(
    {
        "accuracy": MulticlassAccuracy(num_classes=5, average="micro"),
        "f1": torchmetrics.F1Score(task="multiclass", num_classes=5, average="macro"),
        "auroc": torchmetrics.AUROC(task="multiclass", num_classes=5),
    }
)
confusion = MulticlassConfusionMatrix(num_classes=5)
mean = torchmetrics.MeanMetric()
for x, y in zip(logits, labels, strict=True):
    metrics.update(x.softmax(-1), y)
    confusion.update(x, y)
    mean.update(torch.nn.functional.cross_entropy(x, y))
scores = {name: value.item() for name, value in metrics.compute().items()}
regression = torchmetrics.functional.r2_score(
    logits[0, :, 0], logits[0, :, 0] + 0.1 * logits[1, :, 0]
)
diagonal = confusion.compute().diag().sum().item()
print(confusion)
figures = " ".join(f"{name} {value:.5f}" for name, value in sorted(scores.items()))
print(f"{figures} mean {mean.compute().item():.5f} right {diagonal} r2 {regression.item():.5f}")
