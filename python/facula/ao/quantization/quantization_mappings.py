"""Which class replaces which: for static and dynamic quantization, and for training."""

from __future__ import annotations

from copy import deepcopy
from functools import cache

import facula
from facula import nn
from facula.ao.nn import intrinsic as nni
from facula.ao.nn import qat as nnqat
from facula.ao.nn import quantized as nnq
from facula.ao.nn.intrinsic import qat as nniqat
from facula.ao.nn.intrinsic import quantized as nniq
from facula.ao.nn.intrinsic.quantized import dynamic as nniqd
from facula.ao.nn.qat import dynamic as nnqatd
from facula.ao.nn.quantized import dynamic as nnqd
from facula.nn import functional as F

from .fake_quantize import (
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
)
from .stubs import DeQuantStub, QuantStub
from .utils import get_combined_dict

__all__ = [
    "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_QAT_MODULE_MAPPINGS",
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS",
    "DEFAULT_MODULE_TO_ACT_POST_PROCESS",
    "no_observer_set",
    "get_default_static_quant_module_mappings",
    "get_default_static_quant_reference_module_mappings",
    "get_embedding_static_quant_module_mappings",
    "get_default_static_sparse_quant_module_mappings",
    "get_static_quant_module_class",
    "get_dynamic_quant_module_class",
    "get_default_qat_module_mappings",
    "get_embedding_qat_module_mappings",
    "get_default_dynamic_quant_module_mappings",
    "get_default_dynamic_sparse_quant_module_mappings",
    "get_default_qconfig_propagation_list",
    "get_default_compare_output_module_list",
    "get_default_float_to_quantized_operator_mappings",
    "get_quantized_operator",
]

_AttentionLinear = nn.modules.linear.NonDynamicallyQuantizableLinear

DEFAULT_STATIC_QUANT_MODULE_MAPPINGS = {
    QuantStub: nnq.Quantize,
    DeQuantStub: nnq.DeQuantize,
    _AttentionLinear: nnq.Linear,
    nnq.FloatFunctional: nnq.QFunctional,
    # Modules whose quantized class has their name.
    **{
        getattr(nn, kind): getattr(nnq, kind)
        for kind in (
            "BatchNorm2d BatchNorm3d Dropout Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d "
            "ConvTranspose3d ELU Embedding EmbeddingBag GroupNorm Hardswish InstanceNorm1d "
            "InstanceNorm2d InstanceNorm3d LayerNorm LeakyReLU Linear ReLU6 PReLU"
        ).split()
    },
    **{getattr(nni, kind): getattr(nniq, kind) for kind in nniq.__all__},
    # Modules after training with fake-quantized weights.
    nniqat.ConvBn1d: nnq.Conv1d,
    nniqat.ConvBn2d: nnq.Conv2d,
    nniqat.ConvBn3d: nnq.Conv3d,
    nniqat.ConvBnReLU1d: nniq.ConvReLU1d,
    nniqat.ConvBnReLU2d: nniq.ConvReLU2d,
    nniqat.ConvBnReLU3d: nniq.ConvReLU3d,
    nniqat.ConvReLU2d: nniq.ConvReLU2d,
    nniqat.ConvReLU3d: nniq.ConvReLU3d,
    nniqat.LinearReLU: nniq.LinearReLU,
    nniqat.LinearBn1d: nnq.Linear,
    nnqat.Linear: nnq.Linear,
    nnqat.Conv2d: nnq.Conv2d,
    nnqat.Conv3d: nnq.Conv3d,
}

DEFAULT_QAT_MODULE_MAPPINGS = {
    nn.Conv2d: nnqat.Conv2d,
    nn.Conv3d: nnqat.Conv3d,
    nn.Linear: nnqat.Linear,
    _AttentionLinear: nnqat.Linear,
    **{
        getattr(nni, kind): getattr(nniqat, kind)
        for kind in (
            "ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU2d "
            "ConvReLU3d LinearReLU LinearBn1d"
        ).split()
    },
}

DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS = {
    nn.GRUCell: nnqd.GRUCell,
    nn.Linear: nnqd.Linear,
    nnqatd.Linear: nnqd.Linear,
    _AttentionLinear: nnqd.Linear,
    nn.LSTM: nnqd.LSTM,
    nn.GRU: nnqd.GRU,
    nn.LSTMCell: nnqd.LSTMCell,
    nn.RNNCell: nnqd.RNNCell,
    nni.LinearReLU: nniqd.LinearReLU,
    nn.EmbeddingBag: nnq.EmbeddingBag,
    nn.Embedding: nnq.Embedding,
}

DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS = {
    getattr(F, kind): getattr(facula.ops.quantized, kind)
    for kind in ("elu", "hardswish", "instance_norm", "layer_norm", "leaky_relu", "dropout")
}

# Activations whose results have a known range.
DEFAULT_MODULE_TO_ACT_POST_PROCESS = {
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}


@cache
def no_observer_set():
    """Classes whose results are not observed: their parts are."""
    from facula.ao.nn import quantizable

    return {quantizable.LSTM, quantizable.MultiheadAttention}


def get_default_static_quant_module_mappings():
    """Float classes to quantized ones, as a copy.

    Example:
        >>> get_default_static_quant_module_mappings()[nn.Linear].__name__
        'Linear'
    """
    return deepcopy(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_static_quant_reference_module_mappings():
    """Float classes to reference ones, which round their weights and stay floats.

    Example:
        >>> get_default_static_quant_reference_module_mappings()[nn.Linear].__name__
        'Linear'
    """
    from facula.ao.nn.quantized import reference

    named = {
        getattr(nn, kind): getattr(reference, kind)
        for kind in reference.__all__
        if kind != "GRU"  # as in PyTorch
    }
    return {QuantStub: nnq.Quantize, DeQuantStub: nnq.DeQuantize, **named}


def get_embedding_static_quant_module_mappings():
    """Float classes to quantized ones, with embeddings that were trained with fake weights."""
    return {
        **DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        nnqat.EmbeddingBag: nnq.EmbeddingBag,
        nnqat.Embedding: nnq.Embedding,
    }


def get_default_static_sparse_quant_module_mappings():
    """Raises NotImplementedError: there are no modules of sparse quantized weights."""
    raise NotImplementedError("modules of ao.nn.sparse.quantized are missing")


def get_default_dynamic_sparse_quant_module_mappings():
    """Raises NotImplementedError: there are no modules of sparse quantized weights."""
    raise NotImplementedError("modules of ao.nn.sparse.quantized are missing")


def _class_for(float_module_class, default, additional, kind):
    found = get_combined_dict(default, additional).get(float_module_class)
    if found is None:
        raise AssertionError(
            f"Floating point module class {float_module_class} does not have a corresponding "
            f"{kind} module class"
        )
    return deepcopy(found)


def get_static_quant_module_class(
    float_module_class, additional_static_quant_mapping=None, is_reference=False
):
    """The quantized class of a float one.

    Raises:
        AssertionError: there is none.
    """
    defaults = DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    if is_reference:
        defaults = get_default_static_quant_reference_module_mappings()
    return _class_for(float_module_class, defaults, additional_static_quant_mapping, "quantized")


def get_dynamic_quant_module_class(float_module_class, additional_dynamic_quant_mapping=None):
    """The dynamically quantized class of a float one.

    Raises:
        AssertionError: there is none.
    """
    defaults = DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS
    kind = "dynamic quantized"
    return _class_for(float_module_class, defaults, additional_dynamic_quant_mapping, kind)


def get_default_qat_module_mappings():
    """Float classes to those that train with fake-quantized weights, as a copy."""
    return deepcopy(DEFAULT_QAT_MODULE_MAPPINGS)


def get_embedding_qat_module_mappings():
    """As get_default_qat_module_mappings, with embeddings."""
    return {
        **DEFAULT_QAT_MODULE_MAPPINGS,
        nn.EmbeddingBag: nnqat.EmbeddingBag,
        nn.Embedding: nnqat.Embedding,
    }


def get_default_dynamic_quant_module_mappings():
    """Float classes to dynamically quantized ones."""
    return DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS


def get_default_qconfig_propagation_list():
    """The set of classes that have an observer once they have a configuration."""
    return (
        set(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)
        | set(DEFAULT_QAT_MODULE_MAPPINGS)
        | set(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)
        | {nn.Sequential}
    )


def get_default_compare_output_module_list():
    """The set of classes, float and quantized, whose results are compared."""
    tables = (
        DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        DEFAULT_QAT_MODULE_MAPPINGS,
        DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    )
    found = set(tables[0].values()) | set(tables[2].values())
    for table in tables:
        found |= set(table)
    return found | {nn.Sequential}


def get_default_float_to_quantized_operator_mappings():
    """Functions of floats to operators of quantized numbers, as a copy."""
    return dict(DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS)


def get_quantized_operator(float_op):
    """The quantized operator of a function of floats.

    Raises:
        AssertionError: there is none.
    """
    found = DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS.get(float_op)
    if found is None:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return found


def has_special_act_post_process(module):
    """Whether a module that trains has results of a known range."""
    return module.training and type(module) in DEFAULT_MODULE_TO_ACT_POST_PROCESS
