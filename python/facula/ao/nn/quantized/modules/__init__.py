"""The classes of quantized modules, by kind."""

from __future__ import annotations

import facula
from facula.nn import Module
from facula.nn.modules.pooling import MaxPool2d

from .activation import (
    ELU,
    Hardswish,
    LeakyReLU,
    MultiheadAttention,
    PReLU,
    ReLU6,
    Sigmoid,
    Softmax,
)
from .batchnorm import BatchNorm2d, BatchNorm3d
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .dropout import Dropout
from .embedding_ops import Embedding, EmbeddingBag
from .functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from .linear import Linear
from .normalization import GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm
from .rnn import LSTM

__all__ = [
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DeQuantize",
    "ELU",
    "Embedding",
    "EmbeddingBag",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LSTM",
    "MaxPool2d",
    "MultiheadAttention",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "Softmax",
    "Dropout",
    "PReLU",
    "FloatFunctional",
    "FXFloatFunctional",
    "QFunctional",
]


class Quantize(Module):
    """Floats become quantized numbers.

    Args:
        scale (float), zero_point (int): of the result. dtype (facula.dtype): of the result.

    Example:
        >>> Quantize(0.5, 0, facula.quint8)(facula.tensor([1.0])).int_repr()
        tensor([2], dtype=facula.uint8)
    """

    def __init__(self, scale, zero_point, dtype, factory_kwargs=None):
        super().__init__()
        options = factory_kwargs or {}
        self.register_buffer("scale", facula.tensor([scale], **options))
        zeros = facula.tensor(
            [zero_point],
            dtype=facula.long,
            **{k: v for k, v in options.items() if k != "dtype"},
        )
        self.register_buffer("zero_point", zeros)
        self.dtype = dtype

    def forward(self, X):
        """The quantized tensor."""
        return facula.quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """From a prepared QuantStub."""
        if not hasattr(mod, "activation_post_process"):
            raise AssertionError("expected a prepared module; got one without observer")
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        return Quantize(
            scale.float().item(), zero_point.long().item(), mod.activation_post_process.dtype
        )

    def extra_repr(self):
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(Module):
    """Quantized numbers become floats."""

    def forward(self, Xq):
        """The float tensor."""
        return Xq.dequantize()

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """From a prepared DeQuantStub."""
        return DeQuantize()
