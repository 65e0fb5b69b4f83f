"""What modules with quantized weights share."""

from __future__ import annotations

import facula
from facula.ao.quantization._ranges import is_per_tensor
from facula.nn import Module

__all__ = ["WeightedQuantizedModule"]


class WeightedQuantizedModule(Module):
    """A module whose weight is quantized; it comes from a float module or from a reference one."""

    @classmethod
    def from_reference(cls, ref_module, output_scale, output_zero_point):
        """From a reference module, with the scale and zero point of results.

        Raises:
            NotImplementedError: this class has no reference module.
        """
        raise NotImplementedError(f"{cls.__name__}.from_reference(): no reference module is known")


def quantize_weight(weight, observer):
    """A float weight as a quantized one, by what an observer or a fake quantizer says.

    Args:
        weight (Tensor): of floats. observer (Module): has seen the weight.

    Returns:
        Tensor: of the observer's dtype, by its scheme.
    """
    scale, zero_point = observer.calculate_qparams()
    if is_per_tensor(observer.qscheme):
        quantized = facula.quantize_per_tensor(
            weight, float(scale), int(zero_point), observer.dtype
        )
    elif observer.qscheme is facula.per_channel_affine_float_qparams:
        quantized = facula.quantize_per_channel(
            weight, scale.float(), zero_point.float(), observer.ch_axis, observer.dtype
        )
        return quantized
    else:
        quantized = facula.quantize_per_channel(
            weight, scale.double(), zero_point.long(), observer.ch_axis, observer.dtype
        )
    return _within_range(quantized, observer)


def _within_range(quantized, observer):
    """The same integers, kept within the observer's range where that is narrower than the dtype's."""  # noqa: E501
    if quantized.dtype is not facula.qint8 or (observer.quant_min, observer.quant_max) == (
        -128,
        127,
    ):
        return quantized
    integers = quantized.int_repr().clamp(observer.quant_min, observer.quant_max)
    if quantized.qscheme() is facula.per_tensor_affine:
        return facula._make_per_tensor_quantized_tensor(
            integers, quantized.q_scale(), quantized.q_zero_point()
        )
    return facula._make_per_channel_quantized_tensor(
        integers,
        quantized.q_per_channel_scales(),
        quantized.q_per_channel_zero_points(),
        quantized.q_per_channel_axis(),
    )


def check_from_float(cls, mod, name=None):
    """Raise AssertionError where a float module is of another class or has no configuration."""
    wanted = cls._FLOAT_MODULE if isinstance(cls._FLOAT_MODULE, tuple) else (cls._FLOAT_MODULE,)
    name = name or f"nnq.{cls.__name__}"
    if type(mod) not in wanted:
        classes = ", ".join(kind.__name__ for kind in wanted)
        raise AssertionError(f"{name}.from_float only works for {classes}; got {type(mod)}")
    if not getattr(mod, "qconfig", None):
        raise AssertionError("Input float module must have qconfig defined")


def detached(bias):
    """The bias outside of any graph, or None."""
    return None if bias is None else bias.detach()


class ScaledModule(Module):
    """A module whose state has the scale and the zero point of its results, plain numbers in it."""

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = facula.tensor(self.scale)
        destination[prefix + "zero_point"] = facula.tensor(self.zero_point)

    def _load_own(self, states):
        """Take further states, a dict by name; raises RuntimeError where they do not fit."""

    def _own_states(self):
        """The names of further states, in the state dict's order."""
        return ()

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
        names = [*self._own_states(), "scale", "zero_point"]
        found = {name: state_dict[prefix + name] for name in names if prefix + name in state_dict}
        if strict:
            missing_keys.extend(prefix + name for name in names if name not in found)
        others = {k: v for k, v in state_dict.items() if k.removeprefix(prefix) not in found}
        super()._load_from_state_dict(
            others, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        if len(found) < len(names):
            return
        self.scale, self.zero_point = float(found["scale"]), int(found["zero_point"])
        try:
            self._load_own(found)
        except RuntimeError as error:
            error_msgs.append(f"{prefix}: {error}")
