"""Distances and similarities."""

from __future__ import annotations

from facula.nn import functional as F
from facula.nn.modules.module import Module
from facula.nn.modules.utils import _keep


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 over the last dimension."""

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        _keep(self, norm=p, eps=eps, keepdim=keepdim)

    def forward(self, x1, x2):
        """The distance of two tensors, (*, D)."""
        return F.pairwise_distance(x1, x2, p=self.norm, eps=self.eps, keepdim=self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between x1 and x2 along `dim`."""

    __constants__ = ["dim", "eps"]

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        _keep(self, dim=dim, eps=eps)

    def forward(self, x1, x2):
        """The similarity of two tensors."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
