"""Modules of quantized numbers, made by `facula.ao.quantization.convert`."""

from __future__ import annotations

import facula
from facula.nn import Module

__all__ = ["Conv1d", "Conv2d", "Conv3d", "DeQuantize", "Linear", "Quantize", "ReLU6"]

_CONVOLUTIONS = {1: "conv1d", 2: "conv2d", 3: "conv3d"}


def _weight_of(mod):
    """The weight of a prepared float module, quantized by its configuration's observer."""
    observer = mod.qconfig.weight()
    weight = mod.weight.detach().float()
    observer(weight)
    scale, zero_point = observer.calculate_qparams()
    if observer.dtype is not facula.qint8:
        raise NotImplementedError(f"weights of {observer.dtype}: only qint8 is supported")
    if observer.qscheme in (facula.per_tensor_symmetric, facula.per_tensor_affine):
        return facula.quantize_per_tensor(weight, float(scale), int(zero_point), facula.qint8)
    return facula.quantize_per_channel(
        weight, scale.double(), zero_point.long(), observer.ch_axis, facula.qint8
    )


def _split(mod):
    """(the module with the weight, whether a ReLU follows, the activation's scale, zero point)"""
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    inner, relu = (mod[0], True) if hasattr(mod, "__getitem__") else (mod, False)
    if inner is not mod:
        inner.qconfig = mod.qconfig
    return inner, relu, float(scale), int(zero_point)


class Quantize(Module):
    """Floats become quantized numbers.

    Args:
        scale (float), zero_point (int): of the result. dtype (facula.dtype): of the result.

    Example:
        >>> Quantize(0.5, 0, facula.quint8)(facula.tensor([1.0])).int_repr()
        tensor([2], dtype=facula.uint8)
    """

    def __init__(self, scale, zero_point, dtype):
        super().__init__()
        self.register_buffer("scale", facula.tensor([float(scale)]))
        self.register_buffer("zero_point", facula.tensor([int(zero_point)], dtype=facula.long))
        self.dtype = dtype

    def forward(self, X):
        """The quantized tensor."""
        return facula.quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """From a prepared QuantStub."""
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        return Quantize(scale.item(), zero_point.item(), mod.activation_post_process.dtype)

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


class ReLU6(Module):
    """Quantized values clamped to [0, 6]."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input):
        """The clamped tensor."""
        return facula.ops.quantized.relu6(input, self.inplace)

    def _get_name(self):
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """From a prepared nn.ReLU6."""
        return ReLU6(mod.inplace)


class _Packed(Module):
    """What layers with packed weights share: their states under PyTorch's names, in its order."""

    _version = 3

    def _states(self):
        raise NotImplementedError

    def _take_states(self, states):
        raise NotImplementedError

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination.update({prefix + name: state for name, state in self._states().items()})

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
        names = [prefix + name for name in self._states()]
        missing = [name for name in names if name not in state_dict]
        if strict:
            missing_keys.extend(missing)
            others = (k for k in state_dict if k.startswith(prefix) and k not in names)
            unexpected_keys.extend(others)
        if missing:
            return
        states = {name.removeprefix(prefix): state_dict[name] for name in names}
        self.scale, self.zero_point = float(states["scale"]), int(states["zero_point"])
        try:
            self._take_states(states)
        except RuntimeError as error:
            error_msgs.append(f"{prefix}: {error}")

    def _check_shape(self, weight):
        if weight.shape != self.weight().shape:
            raise RuntimeError(
                f"the weight has shape {tuple(weight.shape)} in the checkpoint and "
                f"{tuple(self.weight().shape)} in the model"
            )


class Linear(_Packed):
    """A linear layer of quint8 numbers with weights of qint8.

    Args:
        in_features, out_features (int): the sizes. scale (float), zero_point (int): the result's.
    """

    _relu = False

    def __init__(self, in_features, out_features, weight, bias, scale=1.0, zero_point=0):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.scale, self.zero_point = scale, zero_point
        self._packed = facula.ops.quantized.linear_prepack(weight, bias)

    def forward(self, x):
        """The quantized result."""
        run = facula.ops.quantized.linear_relu if self._relu else facula.ops.quantized.linear
        return run(x, self._packed, self.scale, self.zero_point)

    def weight(self):
        """The quantized weight."""
        return self._packed.unpack()[0]

    def bias(self):
        """The float bias, or None."""
        return self._packed.unpack()[1]

    def _states(self):
        return {
            "scale": facula.tensor(self.scale),
            "zero_point": facula.tensor(self.zero_point),
            "_packed_params.dtype": self.weight().dtype,
            "_packed_params._packed_params": self._packed.unpack(),
        }

    def _take_states(self, states):
        weight, bias = states["_packed_params._packed_params"]
        self._check_shape(weight)
        bias = None if bias is None else bias.detach()
        self._packed = facula.ops.quantized.linear_prepack(weight, bias)

    def _get_name(self):
        return "QuantizedLinearReLU" if self._relu else "QuantizedLinear"

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"scale={self.scale}, zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a prepared nn.Linear, or one with a ReLU."""
        inner, relu, scale, zero_point = _split(mod)
        bias = None if inner.bias is None else inner.bias.detach()
        made = cls(
            inner.in_features, inner.out_features, _weight_of(inner), bias, scale, zero_point
        )
        made._relu = relu
        return made


class _Conv(_Packed):
    """A convolution of quint8 numbers with weights of qint8."""

    _relu = False
    dims = 0

    def __init__(self, packed, scale, zero_point):
        super().__init__()
        self._packed, self.scale, self.zero_point = packed, scale, zero_point

    def forward(self, input):
        """The quantized result."""
        return self._packed.run(input, self.scale, self.zero_point, self._relu)

    def weight(self):
        """The quantized weight."""
        return self._packed.weight()

    def bias(self):
        """The float bias, or None."""
        return self._packed.bias()

    def _states(self):
        return {
            "weight": self.weight(),
            "bias": self.bias(),
            "scale": facula.tensor(self.scale),
            "zero_point": facula.tensor(self.zero_point),
        }

    def _take_states(self, states):
        weight, bias, packed = states["weight"], states["bias"], self._packed
        self._check_shape(weight)
        bias = None if bias is None else bias.detach()
        geometry = (packed.stride(), packed.padding(), packed.dilation(), packed.groups())
        self._packed = self._prepack(weight, bias, *geometry)

    @classmethod
    def _prepack(cls, weight, bias, *geometry):
        return getattr(facula.ops.quantized, f"{_CONVOLUTIONS[cls.dims]}_prepack")(
            weight, bias, *geometry
        )

    def _get_name(self):
        return f"QuantizedConv{'ReLU' if self._relu else ''}{self.dims}d"

    def extra_repr(self):
        outputs, inputs, *kernel = self.weight().shape
        return (
            f"{inputs * self._packed.groups()}, {outputs}, kernel_size={tuple(kernel)}, "
            f"stride={tuple(self._packed.stride())}, scale={self.scale}, "
            f"zero_point={self.zero_point}"
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a prepared convolution, or one with a ReLU."""
        inner, relu, scale, zero_point = _split(mod)
        if inner.padding_mode != "zeros" or isinstance(inner.padding, str):
            raise NotImplementedError(
                f"quantized convolution: padding_mode {inner.padding_mode!r} and padding "
                f"{inner.padding!r}; only numbers of zeros are supported"
            )
        bias = None if inner.bias is None else inner.bias.detach()
        geometry = (inner.stride, inner.padding, inner.dilation, inner.groups)
        made = cls(cls._prepack(_weight_of(inner), bias, *geometry), scale, zero_point)
        made._relu = relu
        return made


class Conv1d(_Conv):
    """A convolution of quint8 numbers over one dimension."""

    dims = 1


class Conv2d(_Conv):
    """A convolution of quint8 numbers over two dimensions."""

    dims = 2


class Conv3d(_Conv):
    """A convolution of quint8 numbers over three dimensions."""

    dims = 3
