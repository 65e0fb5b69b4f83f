"""A linear layer of floats whose quantized weight has zero blocks."""

from __future__ import annotations

import facula
from facula.ao.nn.quantized.dynamic.modules.linear import _weight_observer
from facula.ao.nn.sparse.quantized.linear import _SparseLinear
from facula.nn import Module

__all__ = ["Linear"]


class Linear(_SparseLinear, Module):
    """A linear layer of floats with a weight of qint8 that has zero blocks.

    Args:
        in_features, out_features (int): the sizes.
        row_block_size, col_block_size (int): of the blocks. bias (bool): whether there is a bias.
        dtype (facula.dtype): of the weight, qint8.

    Raises:
        NotImplementedError: another dtype.

    Example:
        >>> from facula.ao.nn.sparse.quantized.dynamic import Linear
        >>> Linear(8, 4, 1, 4)(facula.ones(2, 8)).shape
        facula.Size([2, 4])
    """

    _op_type = "sparse_dynamic"

    def __init__(
        self,
        in_features,
        out_features,
        row_block_size,
        col_block_size,
        bias=True,
        dtype=facula.qint8,
    ):
        super().__init__()
        self._start(in_features, out_features, row_block_size, col_block_size, bias, dtype)

    def _get_name(self):
        return "SparseQuantizedDynamicLinear"

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def forward(self, x):
        """The result (*, out) of floats (*, in), which are quantized by their range."""
        return facula.ops.sparse.qlinear_dynamic(x, self._packed_params._packed_params)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "op_type"] = self._op_type

    def _load_from_state_dict(
        self,
        state_dict,
        prefix,
        local_metadata,
        strict,
        missing_keys,
        unexpected_keys,
        error_msgs,
    ):
        others = {key: value for key, value in state_dict.items() if key != prefix + "op_type"}
        super()._load_from_state_dict(
            others, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a float layer, whose masks were squashed with their block shape kept.

        Raises:
            AssertionError: another class, no configuration, or no `sparse_params`.
        """
        cls._check(mod)
        return cls._made_from(mod, _weight_observer(mod))
