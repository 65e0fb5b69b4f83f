"""Sparsifiers of tensors, parameters and embeddings that are in no model."""

from .base_data_sparsifier import BaseDataSparsifier
from .data_norm_sparsifier import DataNormSparsifier

__all__ = ["BaseDataSparsifier", "DataNormSparsifier"]
