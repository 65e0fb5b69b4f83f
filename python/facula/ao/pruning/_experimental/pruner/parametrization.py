"""The parametrization that masks output channels, and the hook that masks their biases."""

from __future__ import annotations

import facula
from facula import nn
from facula.ao.pruning.sparsifier.utils import module_contains_param

__all__ = ["BiasHook", "FakeStructuredSparsity", "module_contains_param"]


class FakeStructuredSparsity(nn.Module):
    """A parametrization that makes rows of a weight zero: its output channels.

    The mask is not a part of the state dict: the pruner keeps it.

    Args:
        mask (Tensor): a bool for each row.

    Example:
        >>> from facula.ao.pruning._experimental.pruner import FakeStructuredSparsity
        >>> FakeStructuredSparsity(facula.tensor([True, False]))(facula.ones(2, 2))
        tensor([[1., 1.],
                [0., 0.]])
    """

    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x):
        if self.mask.shape[0] != x.shape[0]:
            raise AssertionError(
                f"FakeStructuredSparsity: expected {self.mask.shape[0]} rows, as the mask has; "
                f"got {x.shape[0]}"
            )
        return self.mask.view(-1, *[1] * (x.ndim - 1)) * x

    def state_dict(self, *args, **kwargs):
        return {}


class BiasHook:
    """A forward hook that adds the bias that the pruner took away from a module.

    Args:
        parametrization (FakeStructuredSparsity): its mask says which channels are pruned.
        prune_bias (bool): whether a pruned channel has no bias, either.
    """

    def __init__(self, parametrization, prune_bias):
        self.param = parametrization
        self.prune_bias = prune_bias

    def __call__(self, module, input, output):
        bias = getattr(module, "_bias", None)
        if bias is None:
            return output
        if self.prune_bias:
            bias = facula.where(self.param.mask, bias, facula.zeros_like(bias))
        is_linear = isinstance(module, nn.Linear)
        return output + (bias if is_linear else bias.view(-1, *[1] * len(module.kernel_size)))
