"""The arguments that modules inside a module are called with."""

from __future__ import annotations

import copy

__all__ = ["generate_inputs_for_submodules"]


def generate_inputs_for_submodules(model, inputs, target_submodules, deepcopy=False):
    """Run a module and note what modules in it are called with.

    Args:
        model (Module): is run.
        inputs (tuple): its arguments.
        target_submodules (iterable[str]): the dotted names of the modules.
        deepcopy (bool): whether copies are noted, where later steps write to them.

    Returns:
        dict[str, tuple]: the arguments by name.

    Example:
        >>> import facula
        >>> model = facula.nn.Sequential(facula.nn.Flatten(), facula.nn.ReLU())
        >>> generate_inputs_for_submodules(model, (facula.ones(1, 1, 2),), ["1"])
        {'1': (tensor([[1., 1.]]),)}
    """
    found, handles = {}, []
    names = {module: name for name, module in model.named_modules()}

    def note(module, args):
        found[names[module]] = copy.deepcopy(args) if deepcopy else args

    wanted = set(target_submodules)
    try:
        for name, module in model.named_modules():
            if name in wanted:
                handles.append(module.register_forward_pre_hook(note))
        model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found
