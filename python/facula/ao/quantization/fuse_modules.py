"""Several modules in a row as one, so that they are quantized as one."""

from __future__ import annotations

from copy import deepcopy

from facula import nn
from facula.nn.utils.parametrize import type_before_parametrizations

from .fuser_method_mappings import get_fuser_method

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]


def fuse_known_modules(mod_list, is_qat, additional_fuser_method_mapping=None):
    """The modules that replace a row of modules: one for all, and `Identity` for the others.

    Args:
        mod_list (list of Module). is_qat (bool): whether the result is to be trained.
        additional_fuser_method_mapping (dict): functions that fuse, by tuples of classes.

    Raises:
        AssertionError: no function fuses these classes.
    """
    kinds = tuple(type_before_parametrizations(m) for m in mod_list)
    fused = get_fuser_method(kinds, additional_fuser_method_mapping)(is_qat, *mod_list)
    first, last = mod_list[0], mod_list[-1]
    for hook in first._forward_pre_hooks.values():
        fused.register_forward_pre_hook(hook)
    first._forward_pre_hooks.clear()
    for hook in last._forward_hooks.values():
        fused.register_forward_hook(hook)
    last._forward_hooks.clear()
    rest = [nn.Identity().train(first.training) for _ in mod_list[1:]]
    return [fused, *rest]


def _fuse_row(model, names, is_qat, fuser_func, custom):
    additional = custom.get("additional_fuser_method_mapping", {})
    fused = fuser_func([model.get_submodule(name) for name in names], is_qat, additional)
    for name, made in zip(names, fused, strict=True):
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, made)


def _fuse(model, modules_to_fuse, is_qat, inplace, fuser_func, custom):
    model = model if inplace else deepcopy(model)
    rows = modules_to_fuse
    if not isinstance(rows, (list, tuple, str)):
        raise TypeError(
            f"fuse_modules(): expected a list of names, or of such lists; got {type(rows).__name__}"
        )
    if all(isinstance(name, str) for name in rows):
        rows = [rows]
    for names in rows:
        _fuse_row(model, names, is_qat, fuser_func, custom or {})
    return model


def fuse_modules(
    model,
    modules_to_fuse,
    inplace=False,
    fuser_func=fuse_known_modules,
    fuse_custom_config_dict=None,
):
    """A copy of the model in which convolution or linear layer, normalization and ReLU are one.

    Args:
        model (Module): in evaluation mode. modules_to_fuse: a list of names, or a list of such
            lists. inplace (bool): no copy. fuser_func: makes one module of several.
        fuse_custom_config_dict (dict): has `additional_fuser_method_mapping`.

    Returns:
        Module: with the fused module in the first one's place, `Identity` in the others'.

    Raises:
        AssertionError: another row of modules, or modules in training mode.

    Example:
        >>> model = nn.Sequential(nn.Linear(1, 1), nn.ReLU()).eval()
        >>> type(fuse_modules(model, ["0", "1"])[0]).__name__
        'LinearReLU'
    """
    return _fuse(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model,
    modules_to_fuse,
    inplace=False,
    fuser_func=fuse_known_modules,
    fuse_custom_config_dict=None,
):
    """As fuse_modules, for a model that is to be trained: normalizations stay beside the weight.

    Example:
        >>> model = nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1), nn.ReLU())
        >>> type(fuse_modules_qat(model, ["0", "1", "2"])[0]).__name__
        'ConvBnReLU2d'
    """
    return _fuse(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
