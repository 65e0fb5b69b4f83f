"""Torch7's layers by name, each a few words over a module or a function of today."""

from __future__ import annotations

import functools
import operator

import facula
from facula import nn
from facula.legacy.nn.module import Wrapped

# What Torch7's layers are made of.
_ARGUMENTS = (int, float, list, tuple, facula.Tensor, type(None))


def _layer(name, doc, make):
    """A class whose constructor's arguments go to `make`, which gives the module or function."""

    def __init__(self, *args, **options):
        for given in (*args, *options.values()):
            if not isinstance(given, _ARGUMENTS):
                raise TypeError(
                    f"{name}(): expected numbers, lists of them, or tensors; got {given!r}"
                )
        Wrapped.__init__(self, make(*args, **options))

    members = {"__init__": __init__, "__doc__": doc, "__module__": __name__}
    __all__.append(name)
    globals()[name] = type(name, (Wrapped,), members)


def _of_table(operation):
    """A function of a table's tensors, from one of two."""
    return lambda: lambda *tensors: functools.reduce(operation, tensors)


def _convolution(nInputPlane, nOutputPlane, kW, kH, dW=1, dH=1, padW=0, padH=None):
    padH = padW if padH is None else padH
    return nn.Conv2d(nInputPlane, nOutputPlane, (kH, kW), (dH, dW), (padH, padW))


def _pooling(kind):
    def make(kW, kH, dW=None, dH=None, padW=0, padH=0):
        return kind((kH, kW), (dH or kH, dW or kW), (padH, padW))

    return make


def _normalization(kind):
    return lambda nOutput, eps=1e-5, momentum=0.1, affine=True: kind(nOutput, eps, momentum, affine)


def _reduction(function):
    def make(dimension=0, squeeze=True):
        return lambda x: function(x, dimension, not squeeze)

    return make


def _reshape(*sizes):
    """The sizes of a sample; the dimension of the batch before them stays."""
    sizes = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    count = functools.reduce(operator.mul, sizes, 1)

    def reshape(x):
        return x.reshape(sizes) if x.numel() == count else x.reshape(x.size(0), *sizes)

    return reshape


__all__ = []
_layer("Linear", "y = x W^T + b: Linear(inputSize, outputSize, bias=True).", nn.Linear)
_layer("LookupTable", "Rows by number: LookupTable(nIndex, nOutput).", nn.Embedding)
_layer("Identity", "Gives what it gets.", nn.Identity)
_layer("Dropout", "Zeroes elements at random: Dropout(p=0.5).", nn.Dropout)
_layer("SpatialDropout", "Zeroes channels at random: SpatialDropout(p=0.5).", nn.Dropout2d)
_layer("ReLU", "max(x, 0).", lambda: nn.ReLU())
_layer("ReLU6", "min(max(x, 0), 6).", lambda: nn.ReLU6())
_layer("LeakyReLU", "x, or negval times x below 0.", lambda negval=0.01: nn.LeakyReLU(negval))
_layer(
    "PReLU",
    "x, or a learned slope times x below 0.",
    lambda nOutputPlane=0: nn.PReLU(nOutputPlane or 1),
)
_layer("ELU", "x, or alpha (exp(x) - 1) below 0.", lambda alpha=1.0: nn.ELU(alpha))
_layer("Tanh", "tanh(x).", nn.Tanh)
_layer("Sigmoid", "1 / (1 + exp(-x)).", nn.Sigmoid)
_layer(
    "HardTanh",
    "x cut off at two values.",
    lambda min_value=-1, max_value=1: nn.Hardtanh(min_value, max_value),
)
_layer(
    "SoftPlus",
    "log(1 + exp(beta x)) / beta.",
    lambda beta=1, threshold=20: nn.Softplus(beta, threshold),
)
_layer("SoftSign", "x / (1 + |x|).", nn.Softsign)
_layer("SoftMax", "Exponentials over their sum, along dimension 1.", lambda: nn.Softmax(1))
_layer("SoftMin", "SoftMax of -x.", lambda: nn.Softmin(1))
_layer("LogSoftMax", "The logarithm of SoftMax.", lambda: nn.LogSoftmax(1))
_layer("LogSigmoid", "The logarithm of Sigmoid.", nn.LogSigmoid)
_layer("Abs", "|x|.", lambda: facula.abs)
_layer("Square", "x squared.", lambda: facula.square)
_layer("Sqrt", "The square root.", lambda: facula.sqrt)
_layer("Exp", "e to the x.", lambda: facula.exp)
_layer("Log", "The natural logarithm.", lambda: facula.log)
_layer("Power", "x to a power: Power(p).", lambda p: lambda x: x.pow(p))
_layer(
    "Clamp",
    "x cut off at two values.",
    lambda min_value, max_value: lambda x: x.clamp(min_value, max_value),
)
_layer("AddConstant", "x and a number.", lambda constant_scalar: lambda x: x + constant_scalar)
_layer("MulConstant", "x times a number.", lambda constant_scalar: lambda x: x * constant_scalar)
_layer("Sum", "The sum along a dimension: Sum(dimension=0, squeeze=True).", _reduction(facula.sum))
_layer(
    "Mean", "The mean along a dimension: Mean(dimension=0, squeeze=True).", _reduction(facula.mean)
)
_layer(
    "Max",
    "The greatest along a dimension: Max(dimension=0).",
    lambda dimension=0: lambda x: x.amax(dimension),
)
_layer(
    "Min",
    "The least along a dimension: Min(dimension=0).",
    lambda dimension=0: lambda x: x.amin(dimension),
)
_layer(
    "View",
    "The same numbers in another shape: View(*sizes).",
    lambda *sizes: lambda x: x.reshape(sizes),
)
_layer("Reshape", "Every sample in another shape: Reshape(*sizes).", _reshape)
_layer(
    "Select",
    "One index of a dimension: Select(dimension, index).",
    lambda dimension, index: lambda x: x.select(dimension, index),
)
_layer(
    "Narrow",
    "Some indices of a dimension: Narrow(dimension, offset, length=1).",
    lambda dimension, offset, length=1: lambda x: x.narrow(dimension, offset, length),
)
_layer(
    "SpatialConvolution",
    "A convolution: SpatialConvolution(nInputPlane, nOutputPlane, kW, kH, dW, dH, padW, padH).",
    _convolution,
)
_layer(
    "SpatialMaxPooling",
    "The greatest of each window: SpatialMaxPooling(kW, kH, dW, dH, padW, padH).",
    _pooling(nn.MaxPool2d),
)
_layer(
    "SpatialAveragePooling",
    "The mean of each window: SpatialAveragePooling(kW, kH, dW, dH, padW, padH).",
    _pooling(nn.AvgPool2d),
)
_layer(
    "BatchNormalization",
    "Normalizes (N, C) over the batch: BatchNormalization(nOutput).",
    _normalization(nn.BatchNorm1d),
)
_layer(
    "SpatialBatchNormalization",
    "Normalizes (N, C, H, W) over the batch.",
    _normalization(nn.BatchNorm2d),
)
_layer("CAddTable", "The sum of a table's tensors.", _of_table(operator.add))
_layer("CSubTable", "The first tensor of a table less the second.", _of_table(operator.sub))
_layer("CMulTable", "The product of a table's tensors, elementwise.", _of_table(operator.mul))
_layer("CDivTable", "The first tensor of a table over the second.", _of_table(operator.truediv))
_layer("CMaxTable", "The greatest of a table's tensors, elementwise.", _of_table(facula.maximum))
_layer("CMinTable", "The least of a table's tensors, elementwise.", _of_table(facula.minimum))
_layer(
    "JoinTable",
    "A table's tensors along a dimension.",
    lambda dimension: lambda *t: facula.cat(t, dimension),
)
_layer(
    "SelectTable",
    "One tensor of a table: SelectTable(index).",
    lambda index: lambda *tensors: tensors[index].clone(),
)
_layer("MM", "The matrix product of two tensors of a table.", lambda: facula.matmul)
_layer(
    "DotProduct",
    "The products of rows of two matrices of a table.",
    lambda: lambda a, b: (a * b).sum(-1),
)
_layer(
    "CosineDistance",
    "The cosine between rows of two matrices of a table.",
    lambda: nn.CosineSimilarity(-1),
)
