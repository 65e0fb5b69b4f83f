"""Which modules of sparse quantized weights stand for which dense ones."""

from __future__ import annotations

__all__ = ["get_static_sparse_quantized_mapping", "get_dynamic_sparse_quantized_mapping"]


def get_static_sparse_quantized_mapping():
    """Modules for quantized inputs, for `BaseSparsifier.convert`, by the class of the dense one."""
    from facula import nn
    from facula.ao.nn.sparse import quantized

    return {nn.Linear: quantized.Linear}


def get_dynamic_sparse_quantized_mapping():
    """Modules for float inputs, for `BaseSparsifier.convert`, by the class of the dense one."""
    from facula import nn
    from facula.ao.nn.sparse.quantized import dynamic

    return {nn.Linear: dynamic.Linear}
