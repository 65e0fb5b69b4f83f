"""A sparsifier that keeps the elements about the diagonal."""

from __future__ import annotations

import facula

from .base_sparsifier import BaseSparsifier

__all__ = ["NearlyDiagonalSparsifier"]


class NearlyDiagonalSparsifier(BaseSparsifier):
    """Keeps a band of `nearliness` diagonals in the middle of each matrix.

    Args:
        nearliness (int): the odd number of diagonals that stay: 1 keeps the main diagonal.

    Raises:
        ValueError: at a step, where `nearliness` is even or wider than the matrix.

    Example:
        >>> sparsifier = facula.ao.pruning.NearlyDiagonalSparsifier(nearliness=3)
    """

    def __init__(self, nearliness=1):
        super().__init__(defaults={"nearliness": nearliness})

    def update_mask(self, module, tensor_name, nearliness, **kwargs):
        mask = module.parametrizations[tensor_name][0].mask
        mask.fill_(0)
        if nearliness <= 0:
            return
        if nearliness % 2 == 0:
            raise ValueError(f"nearliness: expected an odd number; got {nearliness}")
        rows, columns = mask.shape
        if nearliness // 2 >= min(rows, columns):
            raise ValueError(
                f"nearliness: expected half a band inside {rows} x {columns}; got {nearliness}"
            )
        reach = nearliness // 2
        mask.copy_(facula.ones_like(mask).tril(reach).triu(-reach))
