"""Several modules in a row as one, so that they are quantized as one."""

from __future__ import annotations

from copy import deepcopy

from facula import nn
from facula.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = ["fuse_modules"]


def _fused(modules):
    """One module for a list of them."""
    from facula.ao.nn import intrinsic

    kinds = {
        nn.Conv1d: intrinsic.ConvReLU1d,
        nn.Conv2d: intrinsic.ConvReLU2d,
        nn.Conv3d: intrinsic.ConvReLU3d,
        nn.Linear: intrinsic.LinearReLU,
    }
    norms = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
    first, *rest = modules
    if type(first) in kinds and rest and isinstance(rest[0], norms):
        fuse = fuse_linear_bn_eval if isinstance(first, nn.Linear) else fuse_conv_bn_eval
        first, rest = fuse(first, rest[0]), rest[1:]
    if type(first) in kinds and len(rest) == 1 and type(rest[0]) is nn.ReLU:
        first, rest = kinds[type(first)](first, rest[0]), []
    if rest or len(modules) < 2:
        names = [type(m).__name__ for m in modules]
        raise NotImplementedError(f"Cannot fuse modules: {names}")
    return first


def fuse_modules(
    model, modules_to_fuse, inplace=False, fuser_func=None, fuse_custom_config_dict=None
):
    """A copy of the model in which convolution or linear layer, normalization and ReLU are one.

    Args:
        model (Module): in evaluation mode. modules_to_fuse: a list of names, or a list of such
            lists. inplace (bool): no copy.

    Returns:
        Module: with the fused module in the first one's place, `Identity` in the others'.

    Raises:
        NotImplementedError: another row of modules.

    Example:
        >>> model = nn.Sequential(nn.Linear(1, 1), nn.ReLU()).eval()
        >>> type(fuse_modules(model, ["0", "1"])[0]).__name__
        'LinearReLU'
    """
    if fuser_func is not None or fuse_custom_config_dict:
        raise NotImplementedError("fuse_modules(): fusers of one's own are not supported")
    model = model if inplace else deepcopy(model)
    lists = [modules_to_fuse] if isinstance(modules_to_fuse[0], str) else modules_to_fuse
    for names in lists:
        fused = _fused([model.get_submodule(name) for name in names])
        for i, name in enumerate(names):
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, nn.Identity() if i else fused)
    return model
