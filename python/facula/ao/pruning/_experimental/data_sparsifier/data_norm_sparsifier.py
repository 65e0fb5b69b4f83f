"""A sparsifier of named data that makes blocks of small norm zero."""

from __future__ import annotations

from math import prod

import facula
from facula.ao.pruning.sparsifier._block_masks import (
    check_zeros_per_block,
    whole_block_mask,
    within_blocks_mask,
)

from .base_data_sparsifier import BaseDataSparsifier

__all__ = ["DataNormSparsifier"]

_NORMS = {"L1": facula.abs, "L2": facula.square}


class DataNormSparsifier(BaseDataSparsifier):
    """Makes blocks of the smallest norm zero, whole or in part.

    Args:
        data_list (list of (str, Tensor or Parameter or Embedding or EmbeddingBag)): names and data
            of one or two dimensions.
        sparsity_level (float): share of the blocks that get zeros.
        sparse_block_shape (tuple of int): rows and columns of a block.
        zeros_per_block (int): zeros in such a block; None: all of it.
        norm (str): "L1" for absolute values or "L2" for squares.

    Raises:
        AssertionError: another norm.
        ValueError: at a step, data of more dimensions, or more zeros than a block has elements.

    Example:
        >>> from facula.ao.pruning._experimental.data_sparsifier import DataNormSparsifier
        >>> sparsifier = DataNormSparsifier([("table", facula.nn.Embedding(10, 8))])
    """

    def __init__(
        self,
        data_list=None,
        sparsity_level=0.5,
        sparse_block_shape=(1, 4),
        zeros_per_block=None,
        norm="L1",
    ):
        if zeros_per_block is None:
            zeros_per_block = prod(sparse_block_shape)
        if norm not in _NORMS:
            raise AssertionError(f"DataNormSparsifier(): expected norm 'L1' or 'L2'; got {norm!r}")
        self.norm = norm
        super().__init__(
            data_list=data_list,
            sparsity_level=sparsity_level,
            sparse_block_shape=sparse_block_shape,
            zeros_per_block=zeros_per_block,
        )

    def update_mask(
        self, name, data, sparsity_level, sparse_block_shape, zeros_per_block, **kwargs
    ):
        check_zeros_per_block(sparse_block_shape, zeros_per_block)
        magnitudes = _NORMS[self.norm](data)
        if data.ndim not in (1, 2):
            raise ValueError(
                f"update_mask(): expected data of one or two dimensions as {name!r}; "
                f"got {data.ndim}"
            )
        if data.ndim == 1:
            magnitudes = magnitudes[None]

        def zero_blocks(count):
            return max(0, min(count, round(sparsity_level * count)))

        new = whole_block_mask(magnitudes, sparse_block_shape, zero_blocks)
        if zeros_per_block < prod(sparse_block_shape):
            inside = within_blocks_mask(magnitudes, sparse_block_shape, zeros_per_block)
            new = facula.logical_or(new, inside)
        new = new.to(facula.int8).view(data.shape)
        self.state[name]["mask"] = new
        self._container.parametrizations[name][0].mask = new
