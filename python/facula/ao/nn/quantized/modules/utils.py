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


def detached(bias):
    """The bias outside of any graph, or None."""
    return None if bias is None else bias.detach()


class PackedModule(Module):
    """A module that is there for parameters that are packed; saved as they were before.

    Its state has `dtype` and, under the name `_PACKED`, what `_unpacked` returns.
    """

    _PACKED = "_packed_params"
    # Whether a state dict with further names is an error where it is loaded strictly.
    _KNOWS_ALL_NAMES = True

    def _unpacked(self):
        """The parameters as they are saved."""
        raise NotImplementedError

    def _take(self, dtype, saved):
        """Pack what was saved; ValueError says why it does not fit."""
        raise NotImplementedError

    def forward(self, x):
        """The tensor itself: the parameters are the module's purpose."""
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + self._PACKED] = self._unpacked()

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
        names = [prefix + "dtype", prefix + self._PACKED]
        missing = [name for name in names if name not in state_dict]
        if strict:
            missing_keys.extend(missing)
        if not missing:
            try:
                self._take(*(state_dict[name] for name in names))
            except ValueError as error:
                error_msgs.append(f"{prefix}: {error}")
        others = {key: value for key, value in state_dict.items() if key not in names}
        strict = strict and self._KNOWS_ALL_NAMES
        super()._load_from_state_dict(
            others, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def __repr__(self):
        return repr(self._unpacked())


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
