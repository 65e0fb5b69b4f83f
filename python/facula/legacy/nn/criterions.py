"""Torch7's criterions: losses with a backward of their own."""

from __future__ import annotations

import facula
from facula import nn
from facula.legacy.nn.module import as_tuple


class Criterion:
    """A loss: `forward(input, target)` gives a number, `backward` the gradient of the input."""

    def __init__(self):
        self.output = 0.0
        self.gradInput = facula.empty(0)

    def updateOutput(self, input, target):
        """Computes and keeps the loss."""
        raise NotImplementedError(f"{type(self).__name__} has no updateOutput()")

    def updateGradInput(self, input, target):
        """Computes and keeps the gradient of the input."""
        raise NotImplementedError(f"{type(self).__name__} has no updateGradInput()")

    def forward(self, input, target):
        """The loss."""
        return self.updateOutput(input, target)

    def backward(self, input, target):
        """The gradient of the input."""
        return self.updateGradInput(input, target)

    __call__ = forward

    def __repr__(self):
        return f"nn.{type(self).__name__}"


class _Wrapped(Criterion):
    """A loss of `facula.nn`, with the backward that autograd gives."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def _loss(self, inputs, target):
        return self.inner(*inputs, target)

    def updateOutput(self, input, target):
        with facula.no_grad():
            self.output = self._loss(as_tuple(input), target).item()
        return self.output

    def updateGradInput(self, input, target):
        inputs = [t.detach().requires_grad_() for t in as_tuple(input)]
        with facula.enable_grad():
            loss = self._loss(inputs, target)
        grads = list(facula.autograd.grad(loss, inputs))
        self.gradInput = grads if isinstance(input, (list, tuple)) else grads[0]
        return self.gradInput


def _criterion(name, doc, kind, *names):
    """A class over a loss of `facula.nn`; `names` are those of its arguments, in Torch7's order."""

    def __init__(self, *args, sizeAverage=None, **options):
        if len(args) > len(names) + 1:
            raise TypeError(
                f"{name}(): expected {len(names) + 1} arguments at most; got {len(args)}"
            )
        given = dict(zip((*names, "sizeAverage"), args, strict=False))
        mean = given.pop("sizeAverage", True if sizeAverage is None else sizeAverage)
        reduction = "mean" if mean else "sum"
        _Wrapped.__init__(self, kind(**given, **options, reduction=reduction))

    members = {"__init__": __init__, "__doc__": doc, "__module__": __name__}
    __all__.append(name)
    globals()[name] = type(name, (_Wrapped,), members)


__all__ = ["Criterion", "MultiCriterion", "ParallelCriterion"]
_criterion("MSECriterion", "The mean of squared differences.", nn.MSELoss)
_criterion("AbsCriterion", "The mean of absolute differences.", nn.L1Loss)
_criterion(
    "SmoothL1Criterion", "Squared differences below 1, absolute ones above.", nn.SmoothL1Loss
)
_criterion("ClassNLLCriterion", "Minus the target's log probability.", nn.NLLLoss, "weight")
_criterion(
    "CrossEntropyCriterion", "ClassNLLCriterion of LogSoftMax.", nn.CrossEntropyLoss, "weight"
)
_criterion(
    "BCECriterion", "The cross-entropy of probabilities of two classes.", nn.BCELoss, "weight"
)
_criterion(
    "DistKLDivCriterion", "The divergence of distributions, from log probabilities.", nn.KLDivLoss
)
_criterion("SoftMarginCriterion", "log(1 + exp(-y x)) for y of 1 or -1.", nn.SoftMarginLoss)
_criterion(
    "MultiMarginCriterion",
    "How far other classes come near to the target's.",
    nn.MultiMarginLoss,
    "p",
    "weight",
    "margin",
)
_criterion(
    "MultiLabelMarginCriterion",
    "MultiMarginCriterion with several targets.",
    nn.MultiLabelMarginLoss,
)
_criterion(
    "HingeEmbeddingCriterion",
    "Distances of pairs, like or unlike.",
    nn.HingeEmbeddingLoss,
    "margin",
)
_criterion(
    "CosineEmbeddingCriterion",
    "Cosines of pairs, like or unlike.",
    nn.CosineEmbeddingLoss,
    "margin",
)
_criterion(
    "MarginRankingCriterion",
    "How far two figures are from their order.",
    nn.MarginRankingLoss,
    "margin",
)


class MultiCriterion(Criterion):
    """A weighted sum of criterions of one input and one target; `add(criterion, weight=1)`."""

    def __init__(self):
        super().__init__()
        self.criterions, self.weights = [], []

    def add(self, criterion, weight=1):
        """Appends a criterion; returns the sum."""
        self.criterions.append(criterion)
        self.weights.append(weight)
        return self

    def _parts(self, input, target):
        return [(c, w, input, target) for c, w in zip(self.criterions, self.weights, strict=True)]

    def updateOutput(self, input, target):
        self.output = sum(w * c.forward(x, y) for c, w, x, y in self._parts(input, target))
        return self.output

    def updateGradInput(self, input, target):
        grads = [c.backward(x, y).mul(w) for c, w, x, y in self._parts(input, target)]
        self.gradInput = sum(grads[1:], grads[0])
        return self.gradInput


class ParallelCriterion(MultiCriterion):
    """A weighted sum of criterions, each of its own part of the input's and target's tables."""

    def _parts(self, input, target):
        return list(zip(self.criterions, self.weights, input, target, strict=True))

    def updateGradInput(self, input, target):
        parts = self._parts(input, target)
        self.gradInput = [c.backward(x, y).mul(w) for c, w, x, y in parts]
        return self.gradInput
