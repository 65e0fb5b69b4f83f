"""A pruner of the output channels of small weights."""

from __future__ import annotations

from .base_structured_sparsifier import BaseStructuredSparsifier

__all__ = ["SaliencyPruner"]


class SaliencyPruner(BaseStructuredSparsifier):
    """Prunes the share `sparsity_level` of the rows, those of the smallest sum of magnitudes.

    What was pruned once stays pruned.

    Args:
        defaults (dict): options of all groups, such as `sparsity_level`.
        patterns (dict): see `BaseStructuredSparsifier`.

    Raises:
        KeyError: at a step, where a group has no `sparsity_level`.

    Example:
        >>> from facula.ao.pruning._experimental.pruner import SaliencyPruner
        >>> pruner = SaliencyPruner({"sparsity_level": 0.5})
    """

    def update_mask(self, module, tensor_name, **kwargs):
        weights = getattr(module, tensor_name)
        mask = module.parametrizations[tensor_name][0].mask
        if weights.ndim < 2:
            raise ValueError(
                f"update_mask(): expected a weight with rows as {tensor_name!r}; "
                f"got shape {tuple(weights.shape)}"
            )
        saliency = weights.flatten(1).norm(p=1, dim=1)
        count = int(len(weights) * kwargs["sparsity_level"])
        mask[saliency.topk(count, largest=False).indices] = False
