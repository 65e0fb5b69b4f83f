"""The operators of `facula.ops.sparse`: linear layers whose quantized weights have zero blocks.

The products are those of dense weights: blocks of zeros change no result, and save no time yet.
"""

from __future__ import annotations

from .packed_weights import LinearPackedParamsBase
from .quantized_operators import QuantizedOperator, linear, linear_dynamic


class SparseLinearPackedParams(LinearPackedParamsBase):
    """The weight (out, in) of qint8 and bias of a linear layer, and the shape of its blocks."""

    def __init__(self, weight, bias, row_block_size, col_block_size):
        super().__init__(weight, bias)
        self.block_sizes = row_block_size, col_block_size
        if min(self.block_sizes) < 1:
            raise RuntimeError(
                f"sparse::qlinear_prepack: expected blocks of at least one row and column; "
                f"got {self.block_sizes}"
            )
        if (self.zero_points != 0).any():
            raise RuntimeError(
                "sparse::qlinear_prepack: expected weights whose zero point is 0, as zeros are "
                f"left out; got {self.zero_points.tolist()}"
            )

    def __reduce__(self):
        return type(self), (self.weight, self.bias, *self.block_sizes)


def qlinear_prepack(W, B, out_features_block_size, in_features_block_size):
    """The weight (out, in) of qint8 and bias, packed, with the shape of the weight's blocks."""
    return SparseLinearPackedParams(W, B, out_features_block_size, in_features_block_size)


def qlinear_unpack(W_prepack):
    """(weight, bias, [rows, columns of a block])"""
    return (*W_prepack.unpack(), list(W_prepack.block_sizes))


def qlinear(X, W_prepack, Y_scale_i, Y_zero_point_i):
    """A linear layer of quint8."""
    return linear(X, W_prepack, Y_scale_i, Y_zero_point_i)


def qlinear_dynamic(X, W_prepack):
    """A linear layer of floats, which are quantized by their range."""
    return linear_dynamic(X, W_prepack)


_operators = {
    function.__name__: QuantizedOperator(function.__name__, function, "sparse")
    for function in (qlinear_prepack, qlinear_unpack, qlinear, qlinear_dynamic)
}


def find(name):
    """The operator of this name, or None."""
    return _operators.get(name)
