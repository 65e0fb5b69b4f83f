"""Names of modules and tensors in a model, and the parametrization that multiplies by a mask."""

from __future__ import annotations

from itertools import chain

from facula.nn import Module
from facula.nn.utils.parametrize import is_parametrized, type_before_parametrizations

__all__ = [
    "module_contains_param",
    "swap_module",
    "module_to_fqn",
    "fqn_to_module",
    "get_arg_info_from_tensor_fqn",
    "FakeSparsity",
]


class FakeSparsity(Module):
    """A parametrization that multiplies a weight by a mask.

    The mask is not a part of the state dict: the sparsifier keeps it.

    Args:
        mask (Tensor): zeros and ones, of the weight's shape.

    Example:
        >>> FakeSparsity(facula.tensor([1.0, 0.0]))(facula.tensor([3.0, 4.0]))
        tensor([3., 0.])
    """

    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x):
        if self.mask.shape != x.shape:
            raise AssertionError(
                f"FakeSparsity: expected a tensor of the mask's shape {tuple(self.mask.shape)}; "
                f"got {tuple(x.shape)}"
            )
        return self.mask * x

    def state_dict(self, *args, **kwargs):
        return {}


def module_contains_param(module, parametrization):
    """Whether a parametrization of this class is the first of one of the module's tensors.

    Args:
        module (Module). parametrization (type): for instance `FakeSparsity`.

    Returns:
        bool
    """
    if not is_parametrized(module):
        return False
    return any(
        isinstance(chain_[0], parametrization) for chain_ in module.parametrizations.values()
    )


def swap_module(mod, mapping):
    """The module that stands for `mod` after conversion; `mod` itself where nothing is mapped.

    The new module takes over the hooks, and all its tensors go to the device of `mod`.

    Args:
        mod (Module): its `sparse_params`, where it has them, are handed on.
        mapping (dict): classes with a class method `from_dense`, by the class before conversion.

    Returns:
        Module

    Raises:
        AssertionError: the module's tensors are on several devices.
    """
    made = mapping.get(type_before_parametrizations(mod))
    if made is None:
        return mod
    new = made.from_dense(mod)
    for hook in mod._forward_pre_hooks.values():
        new.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        new.register_forward_hook(hook)
    devices = {t.device for t in chain(mod.parameters(), mod.buffers())}
    if len(devices) > 1:
        raise AssertionError(
            f"swap_module(): expected the module's tensors on one device; got {devices}"
        )
    for device in devices:
        new.to(device)
    return new


def module_to_fqn(model, module, prefix=""):
    """The dotted name of `module` in `model`; "" for the model itself, None where it is not in it.

    Args:
        model, module (Module). prefix (str): put before the name.

    Example:
        >>> net = facula.nn.Sequential(facula.nn.ReLU())
        >>> module_to_fqn(net, net[0])
        '0'
    """
    if module is model:
        return ""
    for name, found in model.named_modules(remove_duplicate=False):
        if found is module:
            return prefix + name
    return None


def fqn_to_module(model, path):
    """What has the dotted name `path` in `model`: a module or a tensor, or None.

    Example:
        >>> fqn_to_module(facula.nn.Sequential(facula.nn.ReLU()), "0")
        ReLU()
    """
    found = model
    for name in path.split(".") if path else ():
        found = getattr(found, name, None)
        if found is None:
            return None
    return found


def get_arg_info_from_tensor_fqn(model, tensor_fqn):
    """The parts of a tensor's dotted name, and the module that holds it.

    Args:
        model (Module). tensor_fqn (str): such as "layer.weight".

    Returns:
        dict: `module_fqn` (str), `module` (Module, or None where there is none), `tensor_name`
        (str) and `tensor_fqn` (str).
    """
    module_fqn, _, tensor_name = tensor_fqn.rpartition(".")
    return {
        "module_fqn": module_fqn,
        "module": fqn_to_module(model, module_fqn),
        "tensor_name": tensor_name,
        "tensor_fqn": tensor_fqn,
    }
