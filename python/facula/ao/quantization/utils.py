"""What observers, configurations and conversions share: ranges, dtypes, names of modules."""

from __future__ import annotations

import warnings

import facula
from facula.nn.utils.parametrize import is_parametrized

from ._ranges import (
    calculate_qmin_qmax,
    check_min_max_valid,
    determine_qparams,
    is_per_channel,
    is_per_tensor,
    validate_qmin_qmax,
)
from .quant_type import QuantType

__all__ = [
    "get_combined_dict",
    "is_per_tensor",
    "is_per_channel",
    "getattr_from_fqn",
    "get_qparam_dict",
    "get_swapped_custom_module_class",
    "activation_dtype",
    "weight_dtype",
    "activation_is_statically_quantized",
    "activation_is_dynamically_quantized",
    "activation_is_int8_quantized",
    "activation_is_int32_quantized",
    "activation_is_memoryless",
    "weight_is_quantized",
    "weight_is_statically_quantized",
    "op_is_int8_dynamically_quantized",
    "get_qconfig_dtypes",
    "get_quant_type",
    "check_min_max_valid",
    "calculate_qmin_qmax",
    "has_no_children_ignoring_parametrizations",
    "get_fqn_to_example_inputs",
    "to_underlying_dtype",
    "determine_qparams",
    "validate_qmin_qmax",
]

_STATIC = (facula.quint8, facula.qint8, facula.qint32, facula.uint8, facula.int8)
_STATIC += (facula.int16, facula.int32)


def check_module(function, given):
    """Raise AttributeError, which is what PyTorch raises, where no Module was given.

    Args:
        function (str): the name of what was called. given: what should be a Module.
    """
    if not isinstance(given, facula.nn.Module):
        raise AttributeError(f"{function}(): expected a Module; got {type(given).__name__}")


def get_combined_dict(default_dict, additional_dict):
    """A dict with the entries of both; those of the second win.

    Example:
        >>> get_combined_dict({"a": 1}, {"b": 2})
        {'a': 1, 'b': 2}
    """
    return {**default_dict, **(additional_dict or {})}


def getattr_from_fqn(obj, fqn):
    """The attribute of a dotted name."""
    for name in fqn.split("."):
        obj = getattr(obj, name)
    return obj


def to_underlying_dtype(qdtype):
    """The dtype of the integers of a quantized dtype.

    Raises:
        AssertionError: another dtype.
    """
    known = {
        facula.quint8: facula.uint8,
        facula.qint8: facula.int8,
        facula.qint32: facula.int32,
        facula.quint4x2: facula.uint8,
        facula.quint2x4: facula.uint8,
        facula.uint8: facula.uint8,
        facula.int8: facula.int8,
        facula.uint16: facula.uint16,
        facula.int16: facula.int16,
        facula.int32: facula.int32,
        facula.float8_e5m2: facula.float8_e5m2,
        facula.float8_e4m3fn: facula.float8_e4m3fn,
    }
    if qdtype not in known:
        raise AssertionError(f"Unsupported dtype: {qdtype}")
    return known[qdtype]


def get_qparam_dict(observer_or_fake_quant):
    """What an observer says, as a dict: qscheme, dtype, axis, range, scale and zero point."""
    from .observer import PlaceholderObserver

    observer = observer_or_fake_quant
    scheme = getattr(observer, "qscheme", None)
    found = {"qscheme": scheme, "dtype": observer.dtype}
    if scheme is None or isinstance(observer, PlaceholderObserver):
        return {**found, "qscheme": None}
    if scheme is facula.per_tensor_symmetric:
        found["qscheme"] = facula.per_tensor_affine
    elif scheme is facula.per_channel_symmetric:
        found["qscheme"] = facula.per_channel_affine
    if is_per_channel(scheme):
        found["axis"] = observer.ch_axis
    found["scale"], found["zero_point"] = observer.calculate_qparams()
    for name in ("quant_min", "quant_max"):
        if hasattr(observer, name):
            found[name] = getattr(observer, name)
    return found


def get_swapped_custom_module_class(custom_module, custom_module_class_mapping, qconfig):
    """The class that replaces a module's, in a mapping by class or by kind of quantization.

    Raises:
        AssertionError: the mapping does not have the class.
    """
    mapping = custom_module_class_mapping
    first = next(iter(mapping), None)
    if isinstance(first, QuantType):
        mapping = mapping[get_quant_type(qconfig)]
    if type(custom_module) not in mapping:
        raise AssertionError(
            f"expected a class that stands for {type(custom_module).__name__} in the mapping; "
            f"got {mapping}"
        )
    return mapping[type(custom_module)]


def activation_dtype(qconfig):
    """The dtype of a configuration's activations."""
    return qconfig.activation().dtype


def weight_dtype(qconfig):
    """The dtype of a configuration's weights."""
    return qconfig.weight().dtype


def _is_dynamic(qconfig):
    return bool(getattr(qconfig.activation(), "is_dynamic", False))


def activation_is_statically_quantized(qconfig):
    """Whether activations are quantized by an observed range."""
    return activation_dtype(qconfig) in _STATIC and not _is_dynamic(qconfig)


def activation_is_dynamically_quantized(qconfig):
    """Whether activations are quantized by each tensor's own range."""
    return get_qconfig_dtypes(qconfig)[2]


def activation_is_int8_quantized(qconfig):
    """Whether activations are of 8 bits."""
    kinds = (facula.quint8, facula.qint8, facula.uint8, facula.int8)
    return activation_dtype(qconfig) in kinds


def activation_is_int32_quantized(qconfig):
    """Whether activations are of 32 bits."""
    return activation_dtype(qconfig) in (facula.qint32, facula.int32)


def activation_is_memoryless(qconfig):
    """Whether what sees activations keeps nothing of earlier ones."""
    seen = qconfig.activation()
    seen = getattr(seen, "activation_post_process", seen)
    return getattr(seen, "averaging_constant", None) == 1


def weight_is_quantized(qconfig):
    """Whether weights are quantized."""
    kinds = (*_STATIC, facula.quint4x2)
    return weight_dtype(qconfig) in kinds


def weight_is_statically_quantized(qconfig):
    """Whether weights are of 8 bits."""
    kinds = (facula.quint8, facula.qint8, facula.uint8, facula.int8)
    return weight_dtype(qconfig) in kinds


def op_is_int8_dynamically_quantized(qconfig):
    """Whether activations are quantized by their own range and weights are of 8 bits."""
    act, weight, dynamic = get_qconfig_dtypes(qconfig)
    return (
        act in (facula.quint8, facula.uint8) and weight in (facula.qint8, facula.int8) and dynamic
    )


def get_qconfig_dtypes(qconfig):
    """(dtype of activations, dtype of weights, whether activations go by their own range)

    Raises:
        AssertionError: no configuration.
    """
    if qconfig is None:
        raise AssertionError("qconfig must not be None")
    return activation_dtype(qconfig), weight_dtype(qconfig), _is_dynamic(qconfig)


def get_quant_type(qconfig):
    """The QuantType of a configuration.

    Raises:
        AssertionError: no configuration. Exception: dtypes that no type has.
    """
    if qconfig is None:
        raise AssertionError("qconfig must not be None")
    act, weight = qconfig.activation(), qconfig.weight()
    if weight.dtype in (*_STATIC, facula.quint4x2, facula.float8_e5m2, facula.float8_e4m3fn):
        if getattr(act, "is_dynamic", False):
            return QuantType.DYNAMIC
        return QuantType.STATIC if act.dtype in _STATIC else QuantType.WEIGHT_ONLY
    if weight.dtype is facula.float16:
        if getattr(act, "is_dynamic", False):
            return QuantType.DYNAMIC
        if act.dtype is facula.float16:
            return QuantType.STATIC
    raise Exception(
        f"Unrecognized dtype combination in get_quant_type: activation({act.dtype}),"
        f"weight({weight.dtype})"
    )


def has_no_children_ignoring_parametrizations(module):
    """Whether a module has no modules in it but its parametrizations."""
    if len(module._modules) == 0:
        return True
    return is_parametrized(module) and len(module._modules) == 1


def get_fqn_to_example_inputs(model, example_inputs):
    """The inputs that each module of a model gets when the model runs.

    Args:
        model (Module). example_inputs (tuple): of the model.

    Returns:
        dict from a module's dotted name to its inputs, a tuple.
    """
    found, hooks = {}, []

    def keep(name):
        def hook(module, args):
            found[name] = args

        return hook

    for name, module in model.named_modules():
        hooks.append(module.register_forward_pre_hook(keep(name)))
    try:
        model(*example_inputs)
    except Exception as error:
        warnings.warn(f"the model did not run on its example inputs: {error}", stacklevel=2)
    finally:
        for hook in hooks:
            hook.remove()
    return found
