"""Modules as functions of their parameters."""

from __future__ import annotations

import facula


def _owner(module, name):
    path, _, leaf = name.rpartition(".")
    return (module.get_submodule(path) if path else module), leaf


def _table(owner, leaf):
    if leaf in owner._parameters:
        return owner._parameters
    if leaf in owner._buffers:
        return owner._buffers
    raise AttributeError(f"{type(owner).__name__} has no parameter or buffer {leaf!r}")


def _merged(dicts):
    if isinstance(dicts, dict):
        return dict(dicts)
    if not isinstance(dicts, (tuple, list)):
        raise ValueError(
            "functional_call(): parameter_and_buffer_dicts must be a dict or a list or tuple of "
            f"dicts; got {type(dicts).__name__}"
        )
    merged = {}
    for d in dicts:
        for key in d:
            if key in merged:
                raise ValueError(
                    f"functional_call(): {key} stands in several of the dicts"
                )
        merged.update(d)
    return merged


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
        RuntimeError: with strict, names that are missing or unknown.
    """
    values = _merged(parameter_and_buffer_dicts)
    if strict:
        known = {name for name, _ in _named(module)}
        missing, unknown = sorted(known - values.keys()), sorted(values.keys() - known)
        if missing or unknown:
            raise RuntimeError(
                f"Error(s) in functional_call: unexpected keys {unknown}, missing keys {missing}"
            )
    if tie_weights:
        values = _with_ties(module, values)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    before = []
    try:
        for name, value in values.items():
            owner, leaf = _owner(module, name)
            table = _table(owner, leaf)
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
