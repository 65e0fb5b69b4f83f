"""Configurations for a whole model, by class, by name and by pattern."""

from __future__ import annotations

import warnings
from collections import OrderedDict

import facula
from facula import nn
from facula.nn import functional as F

from .fake_quantize import (
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
    default_weight_fake_quant,
)
from .observer import (
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    default_placeholder_observer,
    default_weight_observer,
)
from .qconfig import (
    QConfig,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)

__all__ = [
    "get_default_qconfig_dict",
    "get_default_qat_qconfig_dict",
    "get_default_qconfig_mapping",
    "get_default_qat_qconfig_mapping",
    "QConfigMapping",
]

# The names that to_dict gives, and the attributes they stand for.
_PARTS = {
    "": "global_qconfig",
    "object_type": "object_type_qconfigs",
    "module_name_regex": "module_name_regex_qconfigs",
    "module_name": "module_name_qconfigs",
    "module_name_object_type_order": "module_name_object_type_order_qconfigs",
}


class QConfigMapping:
    """Which configuration each part of a model has; what is more special wins.

    Attributes:
        global_qconfig: for all. object_type_qconfigs: by class or function.
        module_name_regex_qconfigs: by pattern of names. module_name_qconfigs: by name.
        module_name_object_type_order_qconfigs: by (name, class, how manieth).

    Example:
        >>> from facula.ao.quantization import default_qconfig
        >>> mapping = QConfigMapping().set_global(default_qconfig).set_module_name("head", None)
        >>> mapping.module_name_qconfigs
        OrderedDict([('head', None)])
    """

    def __init__(self):
        self.global_qconfig = None
        self.object_type_qconfigs = OrderedDict()
        self.module_name_regex_qconfigs = OrderedDict()
        self.module_name_qconfigs = OrderedDict()
        self.module_name_object_type_order_qconfigs = OrderedDict()

    def set_global(self, global_qconfig):
        """The configuration of what no other names."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type, qconfig):
        """The configuration of a class of modules, or of a function."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex, qconfig):
        """The configuration of modules whose name matches; the first pattern wins."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name, qconfig):
        """The configuration of the module of this name."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(self, module_name, object_type, index, qconfig):
        """The configuration of the index-th use of a class or function in a module."""
        key = (module_name, object_type, index)
        self.module_name_object_type_order_qconfigs[key] = qconfig
        return self

    def __repr__(self):
        text = f"{type(self).__name__} ("
        for attribute in _PARTS.values():
            text += f"\n {attribute}"
            value = getattr(self, attribute)
            if isinstance(value, OrderedDict) and value:
                text += "".join(f"\n  {key}: {config}" for key, config in value.items())
            else:
                text += f"\n  {value}"
        return text + "\n)"

    def to_dict(self):
        """The mapping as a dict, in the manner of `from_dict`: lists of (what, configuration)."""
        found = {}
        for name, attribute in _PARTS.items():
            part = getattr(self, attribute)
            if isinstance(part, OrderedDict):
                part = [
                    (*(key if isinstance(key, tuple) else (key,)), config)
                    for key, config in part.items()
                ]
            found[name] = part
        return found

    @classmethod
    def from_dict(cls, qconfig_dict):
        """A mapping from such a dict, whose parts are lists of (what, configuration)."""
        made = cls()
        if "" in qconfig_dict:
            made.set_global(qconfig_dict[""])
        setters = {
            "object_type": made.set_object_type,
            "module_name_regex": made.set_module_name_regex,
            "module_name": made.set_module_name,
            "module_name_object_type_order": made.set_module_name_object_type_order,
        }
        for name, setter in setters.items():
            entries = qconfig_dict.get(name, [])
            entries = entries.items() if isinstance(entries, dict) else entries
            for entry in entries:
                *keys, config = entry
                keys = keys[0] if len(keys) == 1 and isinstance(keys[0], tuple) else keys
                setter(*keys, config)
        return made


# Functions and classes whose results have a known range: (values, names).
_ZERO_TO_ONE = (nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_", nn.Sigmoid)
_ZERO_TO_ONE += (facula.sigmoid, "sigmoid", "sigmoid_", nn.Softmax)
_NEG_ONE_TO_ONE = (nn.Tanh, facula.tanh, "tanh", "tanh_")
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_TRANSPOSED += (facula.conv_transpose1d, facula.conv_transpose2d, facula.conv_transpose3d)


def get_default_qconfig_dict(backend="x86", version=0):
    """`get_default_qconfig_mapping` as a dict; deprecated (FutureWarning)."""
    _warn_of_dict("get_default_qconfig_dict")
    return get_default_qconfig_mapping(backend, version).to_dict()


def get_default_qat_qconfig_dict(backend="x86", version=1):
    """`get_default_qat_qconfig_mapping` as a dict; deprecated (FutureWarning)."""
    _warn_of_dict("get_default_qat_qconfig_dict")
    return get_default_qat_qconfig_mapping(backend, version).to_dict()


def _warn_of_dict(name):
    instead = name.replace("_dict", "_mapping")
    warnings.warn(f"{name}() is deprecated: call {instead}()", FutureWarning, stacklevel=3)


def _default(qconfig, is_qat):
    """A mapping that takes care of what one configuration for all would quantize wrongly."""
    weight = default_weight_fake_quant if is_qat else default_weight_observer
    if is_qat:
        zero_to_one = default_fixed_qparams_range_0to1_fake_quant
        neg_one_to_one = default_fixed_qparams_range_neg1to1_fake_quant
    else:
        zero_to_one = default_fixed_qparams_range_0to1_observer
        neg_one_to_one = default_fixed_qparams_range_neg1to1_observer
    made = QConfigMapping().set_global(qconfig)
    made.set_object_type("reshape", default_reuse_input_qconfig)
    for kind in _TRANSPOSED:
        made.set_object_type(kind, QConfig(qconfig.activation, weight))
    for kind in (F.layer_norm, nn.LayerNorm):
        made.set_object_type(kind, QConfig(qconfig.activation, default_placeholder_observer))
    made.set_object_type(nn.PReLU, default_quint8_weight_qconfig)
    for kinds, activation in ((_ZERO_TO_ONE, zero_to_one), (_NEG_ONE_TO_ONE, neg_one_to_one)):
        for kind in kinds:
            made.set_object_type(kind, QConfig(activation, weight))
    return made


def get_default_qconfig_mapping(backend="x86", version=0):
    """The mapping for quantization after training; arguments as get_default_qconfig's."""
    return _default(get_default_qconfig(backend, version), False)


def get_default_qat_qconfig_mapping(backend="x86", version=1):
    """The mapping for training with fake quantization; arguments as get_default_qat_qconfig's."""
    return _default(get_default_qat_qconfig(backend, version), True)
