"""Modules as functions of their parameters."""

from __future__ import annotations

from collections import Counter

import facula


def _place(module, name):
    """The table of a parameter or buffer and its key; None for an unknown name."""
    path, _, leaf = name.rpartition(".")
    try:
        owner = module.get_submodule(path) if path else module
    except AttributeError:
        return None
    for table in (owner._parameters, owner._buffers):
        if leaf in table:
            return table, leaf
    return None


def _merged(dicts):
    if isinstance(dicts, dict):
        return dict(dicts)
    if not isinstance(dicts, (tuple, list)):
        raise ValueError(
            "functional_call(): parameter_and_buffer_dicts must be a dict or a list or tuple of "
            f"dicts; got {type(dicts).__name__}"
        )
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("functional_call(): parameter_and_buffer_dicts must hold dicts alone")
    counts = Counter(key for d in dicts for key in d)
    repeated = [key for key, n in counts.items() if n > 1]
    if repeated:
        raise ValueError(f"functional_call(): {repeated} stand in several of the dicts")
    return {key: value for d in dicts for key, value in d.items()}


def _named(module):
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _with_ties(module, values):
    """The values for every name of a tensor that is given under one of its names."""
    names_of = {}
    for name, tensor in _named(module):
        names_of.setdefault(id(tensor), []).append(name)
    full = dict(values)
    for names in names_of.values():
        given = [n for n in names if n in values]
        if len({id(values[n]) for n in given}) > 1:
            raise ValueError(
                f"functional_call(): {sorted(given)} are tied and got several values "
                "(tie_weights=False allows that)"
            )
        if given:
            full.update({n: values[given[0]] for n in names})
    return full


def _check_names(module, unknown, missing):
    if unknown or missing:
        raise RuntimeError(
            f"functional_call(): strict=True requires all names of {type(module).__name__}, and no "
            f"others; unknown: {unknown}, missing: {missing}"
        )


def functional_call(
    module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """Call a module with other parameters and buffers.

    Args:
        module (Module): what to call; it is as before afterwards.
        parameter_and_buffer_dicts (dict, or tuple of dicts): names to Tensors.
        args (tuple or any): positional arguments; anything but a tuple is the only one.
        kwargs (dict): keyword arguments.
        tie_weights (bool): a value for one name of a shared tensor counts for all its names.
        strict (bool): raise where a name is missing or unknown.

    Raises:
        ValueError: a name in two dicts, or different values for one shared tensor.
        TypeError: a value is no Tensor.
        RuntimeError: with strict, names that are missing or unknown.
    """
    values = _merged(parameter_and_buffer_dicts)
    if strict:
        known = {name for name, _ in _named(module)}
        _check_names(module, sorted(values.keys() - known), sorted(known - values.keys()))
    if tie_weights:
        values = _with_ties(module, values)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    before = []
    try:
        for name, value in values.items():
            if value is not None and not isinstance(value, facula.Tensor):
                raise TypeError(f"functional_call(): {name} must be a Tensor; got {value!r}")
            place = _place(module, name)
            if place is None:
                continue
            table, leaf = place
            before.append((table, leaf, table[leaf]))
            table[leaf] = value
        return module(*args, **(kwargs or {}))
    finally:
        for table, leaf, tensor in reversed(before):
            table[leaf] = tensor


def stack_module_state(models):
    """Parameters and buffers of models of one class, stacked, for vmap over functional_call.

    Args:
        models (list of Modules): all of one class and one training mode.

    Returns:
        (params, buffers): dicts from names to stacked Tensors; params that required grad still do.

    Raises:
        RuntimeError: no models, different classes, or some training and some not.
    """
    kinds, modes = {type(m) for m in models}, {bool(m.training) for m in models}
    if not kinds:
        raise RuntimeError("stack_module_state(): expected a model; got none")
    if len(modes) > 1:
        raise RuntimeError(
            "stack_module_state(): all models must be in training mode, or all in evaluation mode"
        )
    if len(kinds) > 1:
        raise RuntimeError("stack_module_state(): all models must have one class")
    params = {}
    for name, first in models[0].named_parameters():
        column = [dict(m.named_parameters())[name] for m in models]
        stacked = facula.stack([p.detach() for p in column])
        params[name] = stacked.requires_grad_(first.requires_grad)
    buffers = {
        name: facula.stack([dict(m.named_buffers())[name] for m in models]).detach()
        for name, _ in models[0].named_buffers()
    }
    return params, buffers


def replace_all_batch_norm_modules_(root):
    """Make every batch norm of a module normalize by the batch alone, in place.

    vmap cannot update running statistics that all samples share.

    Args:
        root (Module): changed with all its parts.

    Returns:
        Module: root.
    """
    from facula.nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.track_running_stats = False
            module.running_mean = module.running_var = module.num_batches_tracked = None
    return root
