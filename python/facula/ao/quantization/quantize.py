"""Preparing, converting and quantizing models."""

from __future__ import annotations

from copy import deepcopy

import facula
from facula import nn

from .stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = [
    "add_quant_dequant",
    "convert",
    "default_eval_fn",
    "prepare",
    "prepare_qat",
    "propagate_qconfig_",
    "quantize",
    "quantize_dynamic",
    "quantize_qat",
]


def _static_mapping():
    from facula.ao.nn import intrinsic
    from facula.ao.nn import quantized as q

    return {
        QuantStub: q.Quantize,
        DeQuantStub: q.DeQuantize,
        nn.Linear: q.Linear,
        nn.Conv1d: q.Conv1d,
        nn.Conv2d: q.Conv2d,
        nn.Conv3d: q.Conv3d,
        nn.ReLU6: q.ReLU6,
        intrinsic.LinearReLU: q.Linear,
        intrinsic.ConvReLU1d: q.Conv1d,
        intrinsic.ConvReLU2d: q.Conv2d,
        intrinsic.ConvReLU3d: q.Conv3d,
    }


def _dynamic_mapping():
    from facula.ao.nn.quantized import dynamic

    return {nn.Linear: dynamic.Linear}


# Kinds whose results have a scale of their own; others keep their input's.
_UNOBSERVED = (DeQuantStub, nn.ReLU6, nn.ReLU, nn.MaxPool2d, nn.Flatten, nn.Identity, nn.Dropout)


def propagate_qconfig_(module, qconfig_dict=None, prepare_custom_config_dict=None):
    """Give each module the configuration of the one around it, where it has none.

    Args:
        module (Module): with `qconfig`. qconfig_dict: configurations by name or class.
    """
    _propagate(module, qconfig_dict or {}, None, "")


def _propagate(module, table, around, name):
    own = table.get(name, table.get(type(module), getattr(module, "qconfig", around)))
    module.qconfig = own
    for child_name, child in module.named_children():
        _propagate(child, table, own, f"{name}.{child_name}" if name else child_name)


def _observe(module, observed):
    for child in module.children():
        whole = type(child) in observed
        if whole and child.qconfig is not None and not isinstance(child, _UNOBSERVED):
            child.add_module("activation_post_process", child.qconfig.activation())
            child.register_forward_hook(_seen)
        if not whole:
            _observe(child, observed)


def _seen(module, inputs, output):
    return module.activation_post_process(output)


def prepare(
    model,
    inplace=False,
    allow_list=None,
    observer_non_leaf_module_list=None,
    prepare_custom_config_dict=None,
):
    """A copy of the model in which observers see what its modules give.

    Args:
        model (Module): with `qconfig`, itself or parts of it. inplace (bool): no copy.

    Returns:
        Module

    Example:
        >>> model = QuantWrapper(facula.nn.Linear(2, 2))
        >>> model.qconfig = facula.ao.quantization.default_qconfig
        >>> prepared = prepare(model.eval())
        >>> _ = prepared(facula.ones(1, 2))
        >>> convert(prepared)(facula.ones(1, 2)).shape
        facula.Size([1, 2])
    """
    if allow_list or observer_non_leaf_module_list or prepare_custom_config_dict:
        raise NotImplementedError("prepare(): custom lists of modules are not supported")
    model = model if inplace else deepcopy(model)
    propagate_qconfig_(model)
    _observe(model, _static_mapping())
    return model


def prepare_qat(model, mapping=None, inplace=False):
    """Raises: training with fake-quantized weights needs ao.nn.qat, which is missing."""
    raise NotImplementedError(
        "prepare_qat(): the modules of ao.nn.qat are missing; FakeQuantize works by itself"
    )


def _swap(module, mapping):
    for name, child in module.named_children():
        kind = mapping.get(type(child))
        if kind is None or getattr(child, "qconfig", None) is None:
            _swap(child, mapping)
            continue
        made = kind.from_float(child)
        made.train(child.training)
        setattr(module, name, made)


def convert(
    module,
    mapping=None,
    inplace=False,
    remove_qconfig=True,
    is_reference=False,
    convert_custom_config_dict=None,
    use_precomputed_fake_quant=False,
):
    """A copy of a prepared model whose modules compute with quantized numbers.

    Args:
        module (Module): prepared, after it has seen data. mapping: classes of float modules to
            those of quantized ones. inplace (bool): no copy.

    Returns:
        Module
    """
    if is_reference or convert_custom_config_dict:
        raise NotImplementedError("convert(): reference and custom modules are not supported")
    module = module if inplace else deepcopy(module)
    _swap(module, _static_mapping() if mapping is None else mapping)
    if remove_qconfig:
        for part in module.modules():
            part.__dict__.pop("qconfig", None)
    return module


def quantize(model, run_fn, run_args, mapping=None, inplace=False):
    """Prepare a model, show it data by `run_fn(model, *run_args)`, and convert it."""
    model = prepare(model if inplace else deepcopy(model), inplace=True).eval()
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


def quantize_qat(model, run_fn, run_args, inplace=False):
    """Raises: see `prepare_qat`."""
    return prepare_qat(model)


def quantize_dynamic(model, qconfig_spec=None, dtype=None, mapping=None, inplace=False):
    """A copy of the model whose linear layers have weights of qint8.

    Args:
        qconfig_spec: a set of classes or names of modules, or configurations by these; all
            linear layers where it is not given. dtype: facula.qint8.

    Returns:
        Module

    Example:
        >>> quantize_dynamic(facula.nn.Sequential(facula.nn.Linear(2, 3)))
        Sequential(
          (0): DynamicQuantizedLinear(in_features=2, out_features=3, dtype=torch.qint8, qscheme=torch.per_tensor_affine)
        )
    """  # noqa: E501
    from .qconfig import default_dynamic_qconfig

    if dtype not in (None, facula.qint8):
        raise NotImplementedError(f"quantize_dynamic(): weights of {dtype}; only qint8")
    mapping = _dynamic_mapping() if mapping is None else mapping
    spec = set(mapping) if qconfig_spec is None else qconfig_spec
    missing = [k for k in spec if isinstance(k, type) and k not in mapping]
    if missing:
        raise NotImplementedError(f"quantize_dynamic(): {missing} have no dynamic module yet")
    table = spec if isinstance(spec, dict) else dict.fromkeys(spec, default_dynamic_qconfig)
    model = (model if inplace else deepcopy(model)).eval()
    propagate_qconfig_(model, table)
    return convert(model, mapping, inplace=True)


def add_quant_dequant(module):
    """The module, with a QuantWrapper around each part that has a configuration of its own."""
    if not list(module.children()) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in list(module.named_children()):
        module._modules[name] = add_quant_dequant(child)
    return module


def default_eval_fn(model, calib_data):
    """Show the model each pair's first part."""
    for data, _ in calib_data:
        model(data)
