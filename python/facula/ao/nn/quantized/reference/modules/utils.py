"""How reference modules keep the scale of a weight, and round the weight by it."""

from __future__ import annotations

import facula
from facula.nn import Module

__all__ = ["ReferenceQuantizedModule"]

_SCHEMES = (
    None,
    facula.per_tensor_affine,
    facula.per_channel_affine,
    facula.per_channel_affine_float_qparams,
)
_BY_CHANNEL = (facula.per_channel_affine, facula.per_channel_affine_float_qparams)
_INTEGERS = (facula.quint8, facula.qint8, facula.qint32)
_DEFAULT = {
    "qscheme": facula.per_tensor_affine,
    "dtype": facula.quint8,
    "scale": 1.0,
    "zero_point": 0,
}
# What a state dict keeps of a weight's rounding: buffers, and plain values beside them.
_BUFFERS = ("scale", "zero_point", "axis")
_VALUES = ("qscheme", "dtype")


def init_qparams(module, name, qparams, device=None):
    """Keep how a weight is rounded in attributes and buffers that begin with its name.

    Args:
        module (Module). name (str): the weight's.
        qparams (dict): `qscheme`, `dtype`, `scale`, `zero_point`, and `axis` where the scheme goes
            by channels; None: a scale of 1 for the whole. device: of the buffers.

    Raises:
        AssertionError: another scheme.
    """
    qparams = _DEFAULT if qparams is None else qparams
    scheme = qparams["qscheme"]
    setattr(module, f"{name}_qscheme", scheme)
    setattr(module, f"{name}_dtype", qparams["dtype"])
    if scheme not in _SCHEMES:
        raise AssertionError(
            f"{module._get_name()}: expected an affine scheme or None; got {scheme}"
        )
    scale, zero_point, axis = 1.0, 0, 0
    if scheme is not None:
        scale, zero_point = qparams["scale"], qparams["zero_point"]
    if scheme in _BY_CHANNEL:
        axis = int(qparams["axis"])
    is_float = scheme is facula.per_channel_affine_float_qparams
    buffers = {
        "scale": (scale, facula.float32),
        "zero_point": (zero_point, facula.float32 if is_float else facula.int32),
        "axis": (axis, facula.int32),
    }
    for key, (value, dtype) in buffers.items():
        tensor = facula.as_tensor(value, device=device).detach().clone().to(dtype)
        module.register_buffer(f"{name}_{key}", tensor)
    setattr(module, f"{name}_axis_int", axis)


def _decomposed(weight, scale, zero_point, least, most):
    """The integers (int8 or uint8) of a rounded weight, as a plain tensor."""
    integers = (weight * (1 / scale)).round() + zero_point
    return integers.clamp(least, most).to(facula.int8 if least < 0 else facula.uint8)


def _along(vector, axis, dims):
    """A vector that goes with one dimension of a tensor of so many."""
    return vector.view([-1 if dim == axis else 1 for dim in range(dims)]) if vector.ndim else vector


def _range(module, name):
    """The least and the largest integer of a weight."""
    dtype = getattr(module, f"{name}_dtype")
    usual = (-128, 127) if dtype in (facula.qint8, facula.int8) else (0, 255)
    given = getattr(module, f"{name}_quant_min", None), getattr(module, f"{name}_quant_max", None)
    return [a if b is None else b for a, b in zip(usual, given, strict=True)]


def quantized_weight(module, name):
    """A weight as its module says that it is quantized.

    Args:
        module (Module): see `init_qparams`. name (str): the weight's.

    Returns:
        Tensor: quantized; plain integers in a decomposed module; float16 where that is the dtype.
    """
    weight = getattr(module, name).detach()
    scheme, dtype, scale, zero_point, axis = (
        getattr(module, f"{name}_{key}")
        for key in ("qscheme", "dtype", "scale", "zero_point", "axis_int")
    )
    if module.is_decomposed and scheme is not None:
        parts = (_along(part, axis, weight.ndim) for part in (scale, zero_point))
        return _decomposed(weight, *parts, *_range(module, name))
    if dtype is facula.float16:
        return weight.to(dtype)
    if dtype not in _INTEGERS or scheme is None:
        return weight
    if scheme is facula.per_tensor_affine:
        return facula.quantize_per_tensor(weight, float(scale), int(zero_point), dtype)
    if scheme is facula.per_channel_affine:
        scale, zero_point = scale.double(), zero_point.long()
    return facula.quantize_per_channel(weight, scale, zero_point, axis, dtype)


def rounded_weight(module, name):
    """A weight as floats after it was quantized and back; as it is where no scheme rounds it."""
    if getattr(module, f"{name}_qscheme") is None:
        return getattr(module, name)
    found = quantized_weight(module, name)
    if not module.is_decomposed:
        return found.dequantize() if found.is_quantized else found
    axis = getattr(module, f"{name}_axis_int")
    scale, zero_point = (
        _along(getattr(module, f"{name}_{key}"), axis, found.ndim)
        for key in ("scale", "zero_point")
    )
    return (found.float() - zero_point) * scale


class ReferenceQuantizedModule(Module):
    """A float module whose weight is rounded at every use as a quantized one would be.

    Attributes:
        weight_qscheme, weight_dtype: how; `weight_scale`, `weight_zero_point`, `weight_axis` are
            buffers. is_decomposed (bool): whether quantized weights are plain integers.
    """

    _IS_REFERENCE = True

    def _init_weight_qparams(self, weight_qparams, device):
        given = weight_qparams or {}
        self.is_decomposed = given.get("is_decomposed", False)
        init_qparams(self, "weight", weight_qparams, device)
        self.weight_quant_min = given.get("quant_min")
        self.weight_quant_max = given.get("quant_max")

    def get_weight(self):
        """The weight, rounded, as floats.

        Returns:
            Tensor
        """
        return rounded_weight(self, "weight")

    def get_quantized_weight(self):
        """The weight, quantized.

        Returns:
            Tensor
        """
        return quantized_weight(self, "weight")

    def _take_parameters(self, mod):
        """Copies of the float module's parameters; returns the module itself."""
        self.weight = facula.nn.Parameter(mod.weight.detach())
        if getattr(mod, "bias", None) is not None:
            self.bias = facula.nn.Parameter(mod.bias.detach())
        return self

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for key in _VALUES:
            destination[f"{prefix}weight_{key}"] = getattr(self, f"weight_{key}")

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
        for key in (*_BUFFERS, *_VALUES):
            name = f"weight_{key}"
            if prefix + name in state_dict:
                # Scales of another number of channels take the place of these.
                setattr(self, name, state_dict[prefix + name])
            elif strict and key in _VALUES:
                missing_keys.append(prefix + name)
        self.weight_axis_int = int(self.weight_axis)
        values = [f"{prefix}weight_{key}" for key in _VALUES]
        others = {key: value for key, value in state_dict.items() if key not in values}
        super()._load_from_state_dict(
            others, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
