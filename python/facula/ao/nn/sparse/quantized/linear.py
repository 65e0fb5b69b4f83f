"""A linear layer of quantized numbers whose weight has zero blocks."""

from __future__ import annotations

import facula
from facula import nn
from facula.ao.nn._from_float import check_float
from facula.ao.nn.quantized.modules.utils import PackedModule, ScaledModule, quantize_weight

__all__ = ["LinearPackedParams", "Linear"]


class LinearPackedParams(PackedModule):
    """The weight, bias and block shape of a sparse quantized layer, packed.

    Args:
        row_block_size, col_block_size (int): of the blocks. dtype (facula.dtype): qint8.

    Raises:
        NotImplementedError: another dtype.
    """

    _version = 1
    _KNOWS_ALL_NAMES = False

    def __init__(self, row_block_size=1, col_block_size=4, dtype=facula.qint8):
        super().__init__()
        if dtype is not facula.qint8:
            raise NotImplementedError(f"LinearPackedParams(): expected qint8; got {dtype}")
        self.dtype = dtype
        empty = facula._empty_affine_quantized([1, 1], scale=1.0, zero_point=0, dtype=dtype)
        self.set_weight_bias(empty, None, row_block_size, col_block_size)

    def _get_name(self):
        return "SparseQuantizedLinearPackedParams"

    def set_weight_bias(self, weight, bias, row_block_size, col_block_size):
        """Pack another weight (out, in) and bias (out) or None.

        Raises:
            AssertionError: a block size is None.
        """
        if row_block_size is None or col_block_size is None:
            raise AssertionError(
                f"set_weight_bias(): expected the block's rows and columns; got {row_block_size} "
                f"and {col_block_size}"
            )
        sizes = row_block_size, col_block_size
        self._packed_params = facula.ops.sparse.qlinear_prepack(weight, bias, *sizes)

    def _weight_bias(self):
        weight, bias, sizes = facula.ops.sparse.qlinear_unpack(self._packed_params)
        return weight, bias, *sizes

    _unpacked = _weight_bias

    def _take(self, dtype, saved):
        self.dtype = dtype
        self.set_weight_bias(*saved)


class _SparseLinear:
    """What these layers share: the packed parameters, and how they come from a float layer."""

    _version = 1
    _FLOAT_MODULE = nn.Linear

    def _start(self, in_features, out_features, row_block_size, col_block_size, bias, dtype):
        if dtype is not facula.qint8:
            raise NotImplementedError(f"{self._get_name()}: expected qint8; got {dtype}")
        self.in_features, self.out_features = in_features, out_features
        weight = facula._empty_affine_quantized(
            [out_features, in_features], scale=1.0, zero_point=0, dtype=dtype
        )
        self._packed_params = LinearPackedParams(row_block_size, col_block_size, dtype)
        zeros = facula.zeros(out_features) if bias else None
        self.set_weight_bias(weight, zeros, row_block_size, col_block_size)

    def set_weight_bias(self, w, b, row_block_size, col_block_size):
        """Pack another quantized weight (out, in) and bias (out) or None, in blocks of this shape.

        Args:
            w (Tensor). b (Tensor or None). row_block_size, col_block_size (int).
        """
        self._packed_params.set_weight_bias(w, b, row_block_size, col_block_size)

    def _weight_bias(self):
        return self._packed_params._weight_bias()

    def weight(self):
        """The quantized weight."""
        return self._weight_bias()[0]

    def bias(self):
        """The float bias, or None."""
        return self._weight_bias()[1]

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"

    @classmethod
    def _check(cls, mod):
        name = f"{cls.__module__.rpartition('.ao.nn.')[2]}.{cls.__name__}"
        check_float(name, mod, cls._FLOAT_MODULE, none_is_default=True)
        if not hasattr(mod, "sparse_params"):
            raise AssertionError(
                f"{name}.from_float(): expected a layer with sparse_params; squash the masks with "
                "params_to_keep=('sparse_block_shape',)"
            )

    @classmethod
    def _made_from(cls, mod, observer):
        """A layer with the float one's weight, quantized by an observer."""
        observer(mod.weight)
        if observer.dtype is not facula.qint8:
            raise AssertionError(
                f"{cls.__name__}.from_float(): expected an observer of qint8; got {observer.dtype}"
            )
        weight = quantize_weight(mod.weight.detach().float(), observer)
        sizes = mod.sparse_params.get("sparse_block_shape", (1, 4))
        made = cls(mod.in_features, mod.out_features, *sizes)
        made.set_weight_bias(weight, mod.bias, *sizes)
        return made


class Linear(_SparseLinear, ScaledModule):
    """A linear layer of quint8 numbers with a weight of qint8 that has zero blocks.

    Args:
        in_features, out_features (int): the sizes.
        row_block_size, col_block_size (int): of the blocks. bias (bool): whether there is a bias.
        dtype (facula.dtype): of the weight, qint8.

    Raises:
        NotImplementedError: another dtype.

    Example:
        >>> from facula.ao.nn.sparse.quantized import Linear
        >>> Linear(8, 4, 1, 4).weight().shape
        facula.Size([4, 8])
    """

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
        self.scale, self.zero_point = 1.0, 0
        self._start(in_features, out_features, row_block_size, col_block_size, bias, dtype)

    @classmethod
    def _get_name(cls):
        return "SparseQuantizedLinear"

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"scale={self.scale}, zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def forward(self, x):
        """The quantized result (*, out) of a quantized tensor (*, in)."""
        packed = self._packed_params._packed_params
        return facula.ops.sparse.qlinear(x, packed, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a prepared float layer, whose masks were squashed with their block shape kept.

        Raises:
            AssertionError: another class, no configuration, or no `sparse_params`.
        """
        cls._check(mod)
        made = cls._made_from(mod, mod.qconfig.weight())
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made
