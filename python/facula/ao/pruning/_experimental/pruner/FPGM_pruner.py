"""A pruner of the filters that are nearest to all others."""

from __future__ import annotations

import facula

from .base_structured_sparsifier import BaseStructuredSparsifier

__all__ = ["FPGMPruner"]


class FPGMPruner(BaseStructuredSparsifier):
    """Prunes the filters nearest to the geometric median of a layer: others can stand for them.

    A filter's score is the sum of its distances from all filters; the share `sparsity_level` of
    the smallest scores is pruned. From He et al., "Filter pruning via geometric median for deep
    convolutional neural networks acceleration", 2019.

    Args:
        sparsity_level (float): share of the filters.
        dist (int or callable): 1 or 2 for the distance of this norm (None: 2), or a function of
            the matrix of the filters to the matrix of their distances.

    Raises:
        NotImplementedError: another norm.

    Example:
        >>> from facula.ao.pruning._experimental.pruner import FPGMPruner
        >>> pruner = FPGMPruner(0.5)
    """

    def __init__(self, sparsity_level=0.5, dist=None):
        super().__init__({"sparsity_level": sparsity_level})
        dist = 2 if dist is None else dist
        if not callable(dist) and dist not in (1, 2):
            raise NotImplementedError(
                f"FPGMPruner(): expected dist 1, 2 or a function; got {dist!r}"
            )
        self.dist_fn = dist if callable(dist) else lambda t: facula.cdist(t, t, p=dist)

    def _compute_distance(self, t):
        """The sum of each filter's distances from all others."""
        return self.dist_fn(t.flatten(1)).sum(1)

    def update_mask(self, module, tensor_name, sparsity_level, **kwargs):
        mask = module.parametrizations[tensor_name][0].mask
        if sparsity_level >= 1:
            mask.fill_(False)
            return
        filters = getattr(module, tensor_name)
        count = max(0, min(len(filters) - 1, round(sparsity_level * len(filters))))
        scores = self._compute_distance(filters)
        mask[scores.topk(count, largest=False).indices] = False
