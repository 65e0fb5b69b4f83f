"""A sparsifier that makes blocks of small norm zero."""

from __future__ import annotations

from math import prod

import facula

from ._block_masks import check_zeros_per_block, whole_block_mask, within_blocks_mask
from .base_sparsifier import BaseSparsifier

__all__ = ["WeightNormSparsifier"]

_NORMS = {1: facula.abs, 2: facula.square}


class WeightNormSparsifier(BaseSparsifier):
    """Makes blocks of the smallest norm zero, whole or in part.

    A matrix is cut into blocks; the share `sparsity_level` of them, those of the smallest mean
    norm, get `zeros_per_block` zeros each, at their smallest elements. At a level below 1 one block
    at least stays.

    Args:
        sparsity_level (float): share of the blocks that get zeros.
        sparse_block_shape (tuple of int): rows and columns of a block.
        zeros_per_block (int): zeros in such a block; None: all of it.
        norm (int or callable): 1 for absolute values, 2 for squares (the default), or a function
            of the weight to magnitudes of the same shape.

    Raises:
        NotImplementedError: another norm.
        ValueError: at a step, where a block has fewer elements than `zeros_per_block`.

    Example:
        >>> two_of_four = facula.ao.pruning.WeightNormSparsifier(1.0, (1, 4), zeros_per_block=2)
        >>> model = facula.nn.Sequential(facula.nn.Linear(8, 1, bias=False))
        >>> two_of_four.prepare(model, None)
        >>> two_of_four.step()
        >>> int((model[0].weight == 0).sum())
        4
    """

    def __init__(
        self, sparsity_level=0.5, sparse_block_shape=(1, 4), zeros_per_block=None, norm=None
    ):
        if zeros_per_block is None:
            zeros_per_block = prod(sparse_block_shape)
        norm = 2 if norm is None else norm
        if not callable(norm) and norm not in _NORMS:
            raise NotImplementedError(
                f"WeightNormSparsifier(): expected norm 1, 2 or a function; got {norm!r}"
            )
        self.norm_fn = norm if callable(norm) else _NORMS[norm]
        super().__init__(
            defaults={
                "sparsity_level": sparsity_level,
                "sparse_block_shape": sparse_block_shape,
                "zeros_per_block": zeros_per_block,
            }
        )

    def update_mask(
        self, module, tensor_name, sparsity_level, sparse_block_shape, zeros_per_block, **kwargs
    ):
        check_zeros_per_block(sparse_block_shape, zeros_per_block)
        mask = module.parametrizations[tensor_name][0].mask
        whole = zeros_per_block == prod(sparse_block_shape)
        if sparsity_level <= 0 or zeros_per_block == 0:
            mask.fill_(1)
            return
        if sparsity_level >= 1 and whole:
            mask.fill_(0)
            return
        magnitudes = self.norm_fn(getattr(module, tensor_name))
        if magnitudes.ndim != 2:
            raise ValueError(
                f"update_mask(): expected a matrix as {tensor_name!r}; "
                f"got shape {tuple(magnitudes.shape)}"
            )

        def zero_blocks(count):
            return min(round(sparsity_level * count), count - 1)

        new = facula.zeros_like(magnitudes)
        if sparsity_level < 1:
            new = whole_block_mask(magnitudes, sparse_block_shape, zero_blocks)
        if not whole:
            inside = within_blocks_mask(magnitudes, sparse_block_shape, zeros_per_block)
            new = facula.logical_or(new, inside)
        mask.copy_(new)
