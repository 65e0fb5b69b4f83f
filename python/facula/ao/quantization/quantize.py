"""Preparing, converting and quantizing models."""

from __future__ import annotations

import inspect
import warnings
from copy import deepcopy

import facula
from facula import nn

from .stubs import DeQuantStub, QuantWrapper
from .utils import (
    activation_is_memoryless,
    check_module,
    get_qparam_dict,
    has_no_children_ignoring_parametrizations,
)

__all__ = [
    "get_default_custom_config_dict",
    "propagate_qconfig_",
    "add_quant_dequant",
    "prepare",
    "quantize",
    "quantize_dynamic",
    "prepare_qat",
    "quantize_qat",
    "convert",
    "swap_module",
    "default_eval_fn",
]


def get_default_custom_config_dict():
    """Classes that are observed and quantized by classes of their own, as `prepare` takes them."""
    from facula.ao.nn import quantizable
    from facula.ao.nn import quantized as nnq

    return {
        "float_to_observed_custom_module_class": {
            nn.LSTM: quantizable.LSTM,
            nn.MultiheadAttention: quantizable.MultiheadAttention,
        },
        "observed_to_quantized_custom_module_class": {
            quantizable.LSTM: nnq.LSTM,
            quantizable.MultiheadAttention: nnq.MultiheadAttention,
        },
    }


def _kind(module):
    from facula.nn.utils.parametrize import type_before_parametrizations

    return type_before_parametrizations(module)


def propagate_qconfig_(module, qconfig_dict=None, prepare_custom_config_dict=None):
    """Give each module the configuration of the one around it, where it has none.

    Args:
        module (Module): with `qconfig`. qconfig_dict: configurations by name or class.
        prepare_custom_config_dict: names and classes that are left out, under
            `non_traceable_module_name` and `non_traceable_module_class`.

    Raises:
        AssertionError: a transposed convolution with a scale for each channel.
    """
    check_module("propagate_qconfig_", module)
    _check_dict("propagate_qconfig_", "qconfig_dict", qconfig_dict)
    _propagate(module, qconfig_dict or {}, None, "", prepare_custom_config_dict or {})


def _check_dict(function, name, given):
    if given is not None and not isinstance(given, dict):
        raise AttributeError(f"{function}(): expected a dict as {name}; got {type(given).__name__}")


def _propagate(module, table, around, name, custom):
    own = table.get(name, table.get(_kind(module), around))
    own = getattr(module, "qconfig", own)
    _check_qconfig(own, module)
    module.qconfig = own
    for child_name, child in module.named_children():
        if child_name in custom.get("non_traceable_module_name", ()):
            continue
        if type(child) in custom.get("non_traceable_module_class", ()):
            continue
        _propagate(child, table, own, f"{name}.{child_name}" if name else child_name, custom)


def _check_qconfig(qconfig, module):
    kinds = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
    if qconfig is None or not isinstance(module, kinds):
        return
    from .observer import (
        MovingAveragePerChannelMinMaxObserver,
        PerChannelMinMaxObserver,
    )

    made = qconfig.weight()
    made = getattr(made, "activation_post_process", made)
    if isinstance(made, (PerChannelMinMaxObserver, MovingAveragePerChannelMinMaxObserver)):
        raise AssertionError(
            "ConvTranspose: expected an observer of the whole weight; got one by channels"
        )


def _observer_forward_hook(self, input, output):
    """What a module gives, through its observer."""
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self, input):
    """What a module takes, through its observer."""
    return self.activation_post_process(input[0])


def _needs_observation(module):
    return getattr(module, "qconfig", None) is not None


def _insert(module, special=None):
    """Let a module's results pass an observer, or its inputs where the observer keeps nothing."""
    if not _needs_observation(module) or isinstance(module, DeQuantStub):
        return
    module.add_module("activation_post_process", (special or module.qconfig.activation)())
    if activation_is_memoryless(module.qconfig):
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _observe(module, observed, whole, custom):
    from facula.ao.nn import intrinsic as nni
    from facula.ao.nn import quantized as nnq

    from .quantization_mappings import (
        DEFAULT_MODULE_TO_ACT_POST_PROCESS,
        has_special_act_post_process,
        no_observer_set,
    )

    for name, child in list(module.named_children()):
        kind = _kind(child)
        if kind is nn.Dropout:
            continue
        if issubclass(kind, (nnq.FloatFunctional, nnq.QFunctional)):
            if _needs_observation(child):
                child.activation_post_process = child.qconfig.activation()
        elif isinstance(child, nni._FusedModule) or kind in whole:
            _insert(child)
        elif has_special_act_post_process(child):
            _insert(child, DEFAULT_MODULE_TO_ACT_POST_PROCESS[kind])
        elif _needs_observation(child) and kind in custom:
            made = custom[kind].from_float(child)
            setattr(module, name, made)
            if not issubclass(custom[kind], tuple(no_observer_set())):
                _insert(made)
        else:
            _observe(child, observed, whole, custom)
    leaf = has_no_children_ignoring_parametrizations(module)
    if leaf and not isinstance(module, nn.Sequential) and _kind(module) in observed:
        _insert(module)


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
        allow_list (set): classes that are observed, in place of the usual ones.
        observer_non_leaf_module_list (set): classes that are observed as wholes.
        prepare_custom_config_dict (dict): as `get_default_custom_config_dict` gives it.

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
    from .quantization_mappings import get_default_qconfig_propagation_list

    check_module("prepare", model)
    config = prepare_custom_config_dict
    config = get_default_custom_config_dict() if config is None else config
    model = model if inplace else deepcopy(model)
    propagate_qconfig_(model)
    if not any(_needs_observation(m) for m in model.modules()):
        warnings.warn(
            "prepare(): expected a qconfig on the model or on parts of it; found none, so nothing "
            "is observed",
            stacklevel=2,
        )
    observed = get_default_qconfig_propagation_list() if allow_list is None else set(allow_list)
    custom = config.get("float_to_observed_custom_module_class", {})
    _observe(model, observed, set(observer_non_leaf_module_list or ()), custom)
    return model


def prepare_qat(model, mapping=None, inplace=False):
    """A copy of the model that trains with rounded weights and activations.

    Args:
        model (Module): in training mode, with `qconfig`. mapping (dict): float classes to those
            that train so. inplace (bool): no copy.

    Returns:
        Module: its parameters are to be trained; then `convert` quantizes it.

    Raises:
        AssertionError: the model is not in training mode.

    Example:
        >>> model = QuantWrapper(facula.nn.Linear(2, 2))
        >>> model.qconfig = facula.ao.quantization.get_default_qat_qconfig()
        >>> prepared = prepare_qat(model)
        >>> prepared(facula.ones(1, 2)).sum().backward()
        >>> convert(prepared.eval())(facula.ones(1, 2)).shape
        facula.Size([1, 2])
    """
    from .quantization_mappings import get_default_qat_module_mappings

    check_module("prepare_qat", model)
    _check_dict("prepare_qat", "mapping", mapping)
    if not model.training:
        raise AssertionError(
            "prepare_qat(): expected a model in training mode; got one in eval mode"
        )
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    model = model if inplace else deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping=mapping, inplace=True, remove_qconfig=False)
    prepare(model, observer_non_leaf_module_list=set(mapping.values()), inplace=True)
    return model


def swap_module(mod, mapping, custom_module_class_mapping, use_precomputed_fake_quant=False):
    """The module that replaces a module, or itself where none does.

    Args:
        mapping (dict): classes to those with `from_float`. custom_module_class_mapping (dict):
            classes to those with `from_observed`. use_precomputed_fake_quant (bool): whether the
            weight's observer is left as it is.
    """
    if not _needs_observation(mod):
        return mod
    kind, custom = _kind(mod), custom_module_class_mapping or {}
    if kind in custom:
        made = custom[kind].from_observed(mod)
    elif kind in mapping:
        made = _from_float(mapping[kind], mod, use_precomputed_fake_quant)
    else:
        return mod
    for hook in mod._forward_pre_hooks.values():
        if hook is not _observer_forward_pre_hook:
            made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            made.register_forward_hook(hook)
    return made


def _qparams_of(config, weight):
    """How a weight is to be rounded, by the observer of a configuration."""
    observer = config.weight()
    observer(weight.detach())
    return get_qparam_dict(observer)


def _reference_from_float(kind, mod):
    """The reference module of a float one, its weights observed now."""
    if hasattr(mod, "weight"):
        return kind.from_float(mod, _qparams_of(mod.qconfig, mod.weight))
    found = {
        name: _qparams_of(mod.qconfig, weight)
        for name, weight in mod.named_parameters()
        if name.startswith("weight")
    }
    return kind.from_float(mod, {**found, "is_decomposed": False})


def _from_float(kind, mod, use_precomputed_fake_quant):
    if getattr(kind, "_IS_REFERENCE", False):
        return _reference_from_float(kind, mod)
    if "use_precomputed_fake_quant" in inspect.signature(kind.from_float).parameters:
        return kind.from_float(mod, use_precomputed_fake_quant=use_precomputed_fake_quant)
    return kind.from_float(mod)


def _convert(module, mapping, custom, use_precomputed_fake_quant):
    from facula.ao.nn import intrinsic as nni

    for name, child in list(module.named_children()):
        if not isinstance(child, nni._FusedModule) and _kind(child) not in custom:
            _convert(child, mapping, custom, use_precomputed_fake_quant)
        module._modules[name] = swap_module(child, mapping, custom, use_precomputed_fake_quant)


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
            those of quantized ones. inplace (bool): no copy. remove_qconfig (bool): whether
            configurations and observers go. is_reference (bool): float modules that round their
            weights, in place of quantized ones. convert_custom_config_dict (dict): as
            `get_default_custom_config_dict` gives it. use_precomputed_fake_quant (bool): whether
            observers of weights are left as they are.

    Returns:
        Module
    """
    check_module("convert", module)
    from . import quantization_mappings as mappings

    config = convert_custom_config_dict
    config = get_default_custom_config_dict() if config is None else config
    module = module if inplace else deepcopy(module)
    if mapping is None and is_reference:
        mapping = mappings.get_default_static_quant_reference_module_mappings()
    elif mapping is None:
        mapping = mappings.get_default_static_quant_module_mappings()
    custom = config.get("observed_to_quantized_custom_module_class", {})
    _convert(module, mapping, custom, use_precomputed_fake_quant)
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def _remove_qconfig(module):
    from .observer import _is_activation_post_process

    for child in module.children():
        _remove_qconfig(child)
    module.__dict__.pop("qconfig", None)
    observer = module._modules.get("activation_post_process")
    if observer is not None and _is_activation_post_process(observer):
        del module._modules["activation_post_process"]
    for hooks in (module._forward_hooks, module._forward_pre_hooks):
        ours = (_observer_forward_hook, _observer_forward_pre_hook)
        for key in [key for key, hook in hooks.items() if hook in ours]:
            del hooks[key]


def quantize(model, run_fn, run_args, mapping=None, inplace=False):
    """Prepare a model, show it data by `run_fn(model, *run_args)`, and convert it."""
    check_module("quantize", model)
    model = model if inplace else deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


def quantize_qat(model, run_fn, run_args, inplace=False):
    """Prepare a model for training, train it by `run_fn(model, *run_args)`, and convert it."""
    check_module("quantize_qat", model)
    model = model if inplace else deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


def _dynamic_spec(spec, dtype):
    """Configurations by class or name, for a set of these or for what a dtype quantizes."""
    from . import qconfig

    by_dtype = {
        facula.qint8: qconfig.default_dynamic_qconfig,
        facula.float16: qconfig.float16_dynamic_qconfig,
        facula.quint8: qconfig.float_qparams_weight_only_qconfig,
        facula.quint4x2: qconfig.float_qparams_weight_only_qconfig_4bit,
    }
    if spec is None:
        if dtype in (facula.qint8, facula.float16):
            spec = {nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell}
        elif dtype is facula.quint8:
            spec = {nn.EmbeddingBag, nn.Embedding}
        elif dtype is facula.quint4x2:
            spec = {nn.EmbeddingBag}
        else:
            raise ValueError(
                f"quantize_dynamic(): no default configuration is known for {dtype}; give a "
                "qconfig_spec"
            )
    if not isinstance(spec, set):
        return spec
    if dtype not in by_dtype:
        raise RuntimeError("Unknown dtype specified for quantize_dynamic: ", str(dtype))
    return dict.fromkeys(spec, by_dtype[dtype])


def quantize_dynamic(model, qconfig_spec=None, dtype=facula.qint8, mapping=None, inplace=False):
    """A copy of the model whose linear and recurrent layers have quantized weights.

    Args:
        qconfig_spec: a set of classes or names of modules, or configurations by these; what the
            dtype quantizes where it is not given. dtype: qint8 or float16 for linear and recurrent
            layers, quint8 or quint4x2 for embeddings.

    Returns:
        Module

    Raises:
        ValueError, RuntimeError: another dtype.

    Example:
        >>> quantize_dynamic(facula.nn.Sequential(facula.nn.Linear(2, 3)))[0].weight().dtype
        facula.qint8
    """
    from .quantization_mappings import get_default_dynamic_quant_module_mappings

    check_module("quantize_dynamic", model)
    spec = _dynamic_spec(qconfig_spec, dtype)
    mapping = get_default_dynamic_quant_module_mappings() if mapping is None else mapping
    model = (model if inplace else deepcopy(model)).eval()
    propagate_qconfig_(model, spec)
    return convert(model, mapping, inplace=True)


def add_quant_dequant(module):
    """The module, with a QuantWrapper around each part that has a configuration of its own."""
    check_module("add_quant_dequant", module)
    if has_no_children_ignoring_parametrizations(module) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in list(module.named_children()):
        module._modules[name] = add_quant_dequant(child)
    return module


def default_eval_fn(model, calib_data):
    """Show the model each pair's first part."""
    for data, _ in calib_data:
        model(data)
