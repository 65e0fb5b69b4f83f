"""The operators of `facula.ops.quantized`.

Products run on integers (src/ops/quantized/products.cpp). The others compute with the floats that
the integers stand for and quantize what comes out, so every result is the nearest one.
"""

from __future__ import annotations

import facula
from facula.nn import functional as F

from .packed_weights import (
    ConvPackedParamsBase,
    EmbeddingPackedParamsBase,
    HalfLinearParams,
    LinearPackedParamsBase,
)

_operators = {}


class QuantizedOperator:
    """A function of `facula.ops.quantized` or another namespace; its overloads are called alike."""

    def __init__(self, name, function, namespace="quantized"):
        self.__name__, self._function, self._namespace = name, function, namespace
        self.__doc__ = function.__doc__

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def overloads(self):
        """The names of overloads; the arguments tell them apart."""
        return ["default"]

    @property
    def default(self):
        return self

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"


def find(name):
    """The operator of this name, or None."""
    return _operators.get(name)


def names():
    """The names of all operators."""
    return list(_operators)


def _operator(function, name=None):
    name = name or function.__name__.rstrip("_")
    _operators[name] = QuantizedOperator(name, function)
    return function


def _quantized(values, scale, zero_point, like):
    return facula.quantize_per_tensor(values, float(scale), int(zero_point), like.dtype)


def _as_before(values, like):
    return _quantized(values, like.q_scale(), like.q_zero_point(), like)


# --- linear layers


@_operator
def linear_prepack(W, B=None):
    """The weight (out, in) of qint8 and bias, packed."""
    return LinearPackedParamsBase(W, B)


@_operator
def linear_prepack_fp16(W, B=None):
    """The weight and bias, rounded to float16."""
    return HalfLinearParams(W, B)


@_operator
def linear_unpack(W_prepack):
    """(weight, bias)"""
    return W_prepack.unpack()


def _linear(X, W, scale, zero_point, relu):
    run = facula.ops.aten._quantized_linear
    return run(X, *W.parts, W.weight.size(1), float(scale), int(zero_point), relu)


@_operator
def linear(X, W_prepack, Y_scale_i, Y_zero_point_i):
    """A linear layer of quint8."""
    return _linear(X, W_prepack, Y_scale_i, Y_zero_point_i, False)


@_operator
def linear_relu(X, W_prepack, Y_scale_i, Y_zero_point_i):
    """A linear layer of quint8 and what is positive of its result."""
    return _linear(X, W_prepack, Y_scale_i, Y_zero_point_i, True)


def _linear_in_floats(X, W, function, scale, zero_point):
    values = F.linear(X.dequantize(), W.weight.dequantize(), W.bias)
    return _quantized(function(values), scale, zero_point, X)


@_operator
def linear_leaky_relu(X, W_prepack, Y_scale_i, Y_zero_point_i, negative_slope):
    """A linear layer of quint8 and leaky_relu."""

    def leaky(y):
        return F.leaky_relu(y, negative_slope)

    return _linear_in_floats(X, W_prepack, leaky, Y_scale_i, Y_zero_point_i)


@_operator
def linear_tanh(X, W_prepack, Y_scale_i, Y_zero_point_i):
    """A linear layer of quint8 and tanh."""
    return _linear_in_floats(X, W_prepack, facula.tanh, Y_scale_i, Y_zero_point_i)


def _linear_dynamic(X, W, reduce_range, relu):
    if isinstance(W, HalfLinearParams):
        values = F.linear(X, W.weight, W.bias)
        return values.relu() if relu else values
    run = facula.ops.aten._quantized_linear_dynamic
    return run(X, *W.parts, W.weight.size(1), reduce_range, relu)


@_operator
def linear_dynamic(X, W_prepack, reduce_range=False):
    """A linear layer of floats, which are quantized by their range."""
    return _linear_dynamic(X, W_prepack, reduce_range, False)


@_operator
def linear_relu_dynamic(X, W_prepack, reduce_range=False):
    """linear_dynamic and what is positive of its result."""
    return _linear_dynamic(X, W_prepack, reduce_range, True)


@_operator
def linear_dynamic_fp16(X, W_prepack):
    """A linear layer of floats with weights of float16."""
    return F.linear(X, W_prepack.weight, W_prepack.bias)


@_operator
def linear_relu_dynamic_fp16(X, W_prepack):
    """linear_dynamic_fp16 and what is positive of its result."""
    return linear_dynamic_fp16(X, W_prepack).relu_()


# --- convolutions


def _reader(fact):
    def read(packed_weights):
        return getattr(packed_weights, fact)()

    read.__doc__ = f"The {fact} of packed weights."
    return read


def _define_prepack(dims):
    def prepack(weight, bias, stride, padding, dilation, groups):
        return ConvPackedParamsBase(weight, bias, stride, padding, dilation, groups, dims)

    prepack.__doc__ = f"The weight of qint8 and bias of a convolution over {dims} dimensions."
    _operator(prepack, f"conv{dims}d_prepack")
    _operator(lambda packed_weights: packed_weights.unpack(), f"conv{dims}d_unpack")
    for fact in ("stride", "padding", "dilation", "groups"):
        _operator(_reader(fact), f"conv{dims}d_{fact}")


def _define_conv(dims, relu):
    # The older overload repeats the geometry before the scale and the zero point.
    def conv(qx, packed_weight, *rest, output_scale=None, output_zero_point=None):
        *_, scale, zero_point = (None, None, *rest)
        scale = output_scale if output_scale is not None else scale
        zero_point = output_zero_point if output_zero_point is not None else zero_point
        return packed_weight.run(qx, float(scale), int(zero_point), relu)

    conv.__doc__ = f"A convolution of quint8 over {dims} dimensions."
    _operator(conv, f"conv{dims}d" + ("_relu" if relu else ""))


def in_bytes(x, packed_weight, reduce_range):
    """A convolution of floats, quantized by their range, which its result has too."""
    q = facula.quantize_per_tensor_dynamic(x, facula.quint8, reduce_range)
    return packed_weight.run(q, q.q_scale(), q.q_zero_point(), False).dequantize()


def _define_conv_dynamic(dims):
    def conv(qx, packed_weight, reduce_range=False):
        return in_bytes(qx, packed_weight, reduce_range)

    conv.__doc__ = f"A convolution of floats over {dims} dimensions, quantized by their range."
    _operator(conv, f"conv{dims}d_dynamic")


for _dims in (1, 2, 3):
    _define_prepack(_dims)
    _define_conv(_dims, False)
    _define_conv(_dims, True)
    _define_conv_dynamic(_dims)


# --- arithmetic


def _positive(values):
    return values.relu()


def _define_binary(name, is_product, relu):
    run = facula.ops.aten._quantized_binary

    def with_scale(qa, qb, scale=None, zero_point=None, *, out=None):
        if not isinstance(qb, facula.Tensor) or not isinstance(qa, facula.Tensor):
            return with_number(qa, qb)
        if out is None and isinstance(scale, facula.Tensor):
            out = scale
        if out is None:
            return run(qa, qb, float(scale), int(zero_point), is_product, relu)
        return out.copy_(run(qa, qb, out.q_scale(), out.q_zero_point(), is_product, relu))

    def with_number(qa, b):
        if not isinstance(qa, facula.Tensor):
            qa, b = b, qa
        number = b.item() if isinstance(b, facula.Tensor) else b
        return _by_number(qa, number, is_product, relu)

    with_scale.__doc__ = "The operator on the values; the result is quantized anew."
    with_number.__doc__ = "The operator with a number, which the result's scale takes up."
    _operator(with_scale, name)
    _operator(with_number, f"{name.removesuffix('_relu')}_scalar" + ("_relu" if relu else ""))


def _by_number(qa, number, is_product, relu):
    """The integers stay what they are where the scale or the zero point can take the number up."""
    scale, zero = qa.q_scale(), qa.q_zero_point()
    low, high = _bounds(qa.dtype)
    q = qa.int_repr().long()
    if is_product and number > 0:
        new_scale, new_zero = scale * number, zero
    elif is_product and number < 0:
        q, new_scale, new_zero = low + high - q, scale * -number, low + high - zero
    elif is_product:
        q, new_scale, new_zero = facula.zeros_like(q), 1.0, 0
    else:
        shift = round(number / scale)
        new_scale, new_zero = scale, zero - shift
        if not low <= new_zero <= high:
            # The zero point would leave the range: the nearest that holds all values.
            end = low if new_zero < low else high
            wanted = (q - new_zero).double()
            spread = max(high - new_zero, 1) if end == low else max(new_zero - low, 1)
            new_scale = scale * spread / (high - low)
            q = (wanted * (scale / new_scale)).round().long() + end
            new_zero = end
    q = q.clamp(min=new_zero) if relu else q
    q = q.clamp(low, high).to(facula.ops.aten._shared_int_repr(qa).dtype)
    return facula._make_per_tensor_quantized_tensor(q, new_scale, new_zero)


def _bounds(dtype):
    if dtype is facula.qint8:
        return -128, 127
    return (0, 255) if dtype is facula.quint8 else (-(2**31), 2**31 - 1)


for _relu, _suffix in ((False, ""), (True, "_relu")):
    _define_binary("add" + _suffix, False, _relu)
    _define_binary("mul" + _suffix, True, _relu)


def _define_cat(name, finish):
    def join(qx, dim, scale=None, zero_point=None):
        scale = qx[0].q_scale() if scale is None else scale
        zero_point = qx[0].q_zero_point() if zero_point is None else zero_point
        values = facula.cat([t.dequantize() for t in qx], dim)
        return _quantized(finish(values) if finish else values, scale, zero_point, qx[0])

    join.__doc__ = "Tensors joined along dim; the result is quantized anew."
    _operator(join, name)


_define_cat("cat", None)
_define_cat("cat_relu", _positive)


@_operator
def matmul(qa, qb, scale, zero_point):
    """The product of matrices; the result is quantized anew."""
    return _quantized(qa.dequantize() @ qb.dequantize(), scale, zero_point, qa)


# --- activations and norms: name, function of floats and its further arguments


@_operator
def relu6(qx, inplace=False):
    """Values clamped to [0, 6]."""
    result = qx.clamp(0, 6)
    return qx.copy_(result) if inplace else result


@_operator
def clamp(qx, min=None, max=None):
    """Values clamped."""
    return qx.clamp(min, max)


@_operator
def threshold(qx, threshold, value):
    """Values above the threshold; `value` in place of others."""
    return _as_before(F.threshold(qx.dequantize(), threshold, value), qx)


@_operator
def leaky_relu(qx, negative_slope, inplace, output_scale, output_zero_point):
    """leaky_relu; the result is quantized anew."""
    values = F.leaky_relu(qx.dequantize(), negative_slope)
    return _quantized(values, output_scale, output_zero_point, qx)


@_operator
def sigmoid(qx, output_scale, output_zero_point):
    """sigmoid; the result is quantized anew."""
    return _quantized(facula.sigmoid(qx.dequantize()), output_scale, output_zero_point, qx)


@_operator
def hardswish(input, output_scale, output_zero_point):
    """hardswish; the result is quantized anew."""
    return _quantized(F.hardswish(input.dequantize()), output_scale, output_zero_point, input)


@_operator
def elu(self, output_scale, output_zero_point, alpha=1, scale=1, input_scale=1):
    """elu; the result is quantized anew."""
    x = self.dequantize()
    values = scale * facula.where(x > 0, x, alpha * facula.expm1(x * input_scale))
    return _quantized(values, output_scale, output_zero_point, self)


@_operator
def celu(self, output_scale, output_zero_point, alpha=1):
    """celu; the result is quantized anew."""
    return _quantized(F.celu(self.dequantize(), alpha), output_scale, output_zero_point, self)


@_operator
def prelu(qx, weight, output_scale, output_zero_point):
    """prelu with a quantized weight; the result is quantized anew."""
    values = F.prelu(qx.dequantize(), weight.dequantize())
    return _quantized(values, output_scale, output_zero_point, qx)


@_operator
def softmax(qx, dim, output_scale, output_zero_point):
    """softmax; the result is quantized anew."""
    return _quantized(F.softmax(qx.dequantize(), dim), output_scale, output_zero_point, qx)


@_operator
def dropout(self, output_scale, output_zero_point, p=0.5, training=False):
    """dropout; the result is quantized anew."""
    values = F.dropout(self.dequantize(), float(p), training)
    return _quantized(values, output_scale, output_zero_point, self)


@_operator
def max_pool2d(qx, kernel_size, stride, padding, dilation, ceil_mode):
    """The greatest value of each window."""
    return F.max_pool2d(qx, kernel_size, stride or None, padding, dilation, ceil_mode)


def _define_batch_norm(name, dims, relu):
    def norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point):
        if dims and qx.dim() not in dims:
            raise RuntimeError(f"{name}: expected an input of {dims} dimensions; got {qx.dim()}")
        values = F.batch_norm(qx.dequantize(), mean, var, weight, bias, False, 0.0, eps)
        values = values.relu() if relu else values
        return _quantized(values, output_scale, output_zero_point, qx)

    norm.__doc__ = "Batch normalization by given statistics; the result is quantized anew."
    _operator(norm, name)


for _name, _ndim in (("1d", (2, 3)), ("2d", (4,)), ("3d", (5,)), ("", ())):
    _define_batch_norm("batch_norm" + _name, _ndim, False)
    _define_batch_norm(f"batch_norm{_name}_relu", _ndim, True)


@_operator
def layer_norm(input, normalized_shape, weight, bias, eps, output_scale, output_zero_point):
    """layer_norm; the result is quantized anew."""
    values = F.layer_norm(input.dequantize(), normalized_shape, weight, bias, eps)
    return _quantized(values, output_scale, output_zero_point, input)


@_operator
def group_norm(input, num_groups, weight, bias, eps, output_scale, output_zero_point):
    """group_norm; the result is quantized anew."""
    values = F.group_norm(input.dequantize(), num_groups, weight, bias, eps)
    return _quantized(values, output_scale, output_zero_point, input)


@_operator
def instance_norm(input, weight, bias, eps, output_scale, output_zero_point):
    """instance_norm; the result is quantized anew."""
    values = F.instance_norm(input.dequantize(), weight=weight, bias=bias, eps=eps)
    return _quantized(values, output_scale, output_zero_point, input)


# --- embeddings


@_operator
def embedding_bag_prepack(weight):
    """The weight of an embedding."""
    return EmbeddingPackedParamsBase(weight)


@_operator
def embedding_bag_unpack(W_prepack):
    """The weight."""
    return W_prepack.unpack()


def _embedding(weight, indices, pruned_weights=False):
    """The rows of these indices, as floats."""
    return weight.rows(indices)


def _embedding_bag(
    weight,
    indices,
    offsets=None,
    scale_grad_by_freq=False,
    mode=0,
    pruned_weights=False,
    per_sample_weights=None,
    compressed_indices_mapping=None,
    include_last_offset=False,
):
    """Sums of rows, as floats."""
    if pruned_weights or compressed_indices_mapping is not None:
        raise NotImplementedError("embedding_bag: pruned weights are not supported")
    rows = weight.rows(indices.reshape(-1))
    order = facula.arange(indices.numel()).reshape(indices.shape)
    weights = None if per_sample_weights is None else per_sample_weights.reshape(indices.shape)
    return F.embedding_bag(
        order,
        rows,
        offsets,
        mode=("sum", "mean", "max")[mode],
        per_sample_weights=weights,
        include_last_offset=include_last_offset,
    )


_operator(_embedding, "embedding_byte")
_operator(_embedding, "embedding_4bit")
_operator(_embedding_bag, "embedding_bag_byte")
_operator(_embedding_bag, "embedding_bag_4bit")


# --- recurrent cells of floats, with packed weights


@_operator
def quantized_lstm_cell_dynamic(input, hx, w_ih, w_hh, bias_ih, bias_hh):
    """One step of an LSTM: the new hidden and cell states."""
    h, c = hx
    gates = linear_dynamic(input, w_ih, True) + linear_dynamic(h, w_hh, True)
    i, f, g, o = gates.chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


@_operator
def quantized_gru_cell_dynamic(input, hx, w_ih, w_hh, b_ih, b_hh):
    """One step of a GRU: the new hidden state."""
    r, z, n = linear_dynamic(input, w_ih, True).chunk(3, 1)
    r_h, z_h, n_h = linear_dynamic(hx, w_hh, True).chunk(3, 1)
    r, z = (r + r_h).sigmoid(), (z + z_h).sigmoid()
    n = (n + r * n_h).tanh()
    return (hx - n) * z + n


def _define_rnn_cell(name, activation):
    def cell(input, hx, w_ih, w_hh, b_ih, b_hh):
        return activation(linear_dynamic(input, w_ih, True) + linear_dynamic(hx, w_hh, True))

    cell.__doc__ = "One step of an RNN: the new hidden state."
    _operator(cell, name)


_define_rnn_cell("quantized_rnn_tanh_cell_dynamic", facula.tanh)
_define_rnn_cell("quantized_rnn_relu_cell_dynamic", facula.relu)

# Families in files of their own add to the table; they need what is above.
from . import quantized_recurrent, quantized_transposed  # noqa: E402, F401
