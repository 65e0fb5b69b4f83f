"""Masks that make blocks of a matrix, or elements inside of blocks, zero."""

from __future__ import annotations

from math import inf

import facula
from facula.nn import functional as F


def check_zeros_per_block(block_shape, zeros_per_block):
    """Raise ValueError unless a block has this many elements.

    Args:
        block_shape (tuple of int): rows and columns. zeros_per_block (int).
    """
    rows, columns = block_shape
    if not 0 <= zeros_per_block <= rows * columns:
        raise ValueError(
            f"zeros_per_block: expected a number from 0 to {rows * columns}, the elements of a "
            f"block; got {zeros_per_block}"
        )


def whole_block_mask(data, block_shape, zero_blocks):
    """A mask that is zero in the blocks of the smallest means.

    Args:
        data (Tensor): magnitudes, a matrix. Blocks at its end may be cut off.
        block_shape (tuple of int): rows and columns.
        zero_blocks (callable): the number of blocks to make zero, of the number of blocks.

    Returns:
        Tensor: zeros and ones, of the shape and dtype of `data`.
    """
    scores = F.avg_pool2d(data[None, None], block_shape, block_shape, ceil_mode=True)[0, 0]
    blocks = facula.ones_like(scores)
    smallest = scores.flatten().topk(zero_blocks(scores.numel()), largest=False).indices
    blocks.view(-1)[smallest] = 0
    rows, columns = block_shape
    mask = blocks.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    return mask[: data.shape[0], : data.shape[1]]


def within_blocks_mask(data, block_shape, zeros_per_block):
    """A mask that is zero at the smallest elements of every block.

    Args:
        data (Tensor): magnitudes, a matrix. Blocks at its end may be cut off; they get as many
            zeros as the others, or are zero.
        block_shape (tuple of int): rows and columns. zeros_per_block (int).

    Returns:
        Tensor: zeros and ones, of the shape and dtype of `data`.
    """
    rows, columns = block_shape
    padded = F.pad(data, (0, -data.shape[1] % columns, 0, -data.shape[0] % rows), value=inf)
    high, wide = padded.shape[0] // rows, padded.shape[1] // columns
    blocks = padded.view(high, rows, wide, columns).transpose(1, 2).flatten(2)
    smallest = blocks.topk(zeros_per_block, dim=2, largest=False).indices
    mask = facula.ones_like(blocks).scatter_(2, smallest, 0)
    mask = mask.view(high, wide, rows, columns).transpose(1, 2).reshape(padded.shape)
    return mask[: data.shape[0], : data.shape[1]]
