"""A pruner of the rows of small weights in each gate of an LSTM."""

from __future__ import annotations

from .base_structured_sparsifier import BaseStructuredSparsifier

__all__ = ["LSTMSaliencyPruner"]


class LSTMSaliencyPruner(BaseStructuredSparsifier):
    """Prunes the share `sparsity_level` of the rows of each of the four gates.

    All gates lose as many rows, those of the smallest sum of magnitudes; what was pruned once
    stays pruned.

    Args:
        defaults (dict): options of all groups, such as `sparsity_level`.
        patterns (dict): see `BaseStructuredSparsifier`.

    Example:
        >>> from facula.ao.pruning._experimental.pruner import LSTMSaliencyPruner
        >>> pruner = LSTMSaliencyPruner({"sparsity_level": 0.5})
        >>> model = facula.nn.Sequential(facula.nn.LSTM(4, 6))
        >>> pruner.prepare(model, [{"tensor_fqn": "0.weight_ih_l0"}])
    """

    def update_mask(self, module, tensor_name, **kwargs):
        weights = getattr(module, tensor_name)
        mask = module.parametrizations[tensor_name][0].mask
        rows, rest = divmod(len(weights), 4)
        if weights.ndim != 2 or rest:
            raise ValueError(
                f"update_mask(): expected a matrix with the rows of four gates as "
                f"{tensor_name!r}; got shape {tuple(weights.shape)}"
            )
        count = int(rows * kwargs["sparsity_level"])
        saliency = weights.norm(p=1, dim=1).view(4, rows)
        smallest = saliency.topk(count, dim=1, largest=False).indices
        # The rows are those of a view, so the mask itself changes.
        mask.view(4, rows).scatter_(1, smallest, False)
