"""States of models and optimizers by names that do not hang on how the model is wrapped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

import facula
import facula.distributed as dist
from facula import nn

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

# What wrappers put into names.
_WRAPPERS = ("_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module")


@dataclass
class StateDictOptions:
    """How states are given and taken.

    Args:
        full_state_dict (bool): whole tensors in place of parts.
        cpu_offload (bool): on the CPU; with full_state_dict on rank 0 alone, others get {}.
        ignore_frozen_params (bool): without parameters that need no gradient.
        keep_submodule_prefixes (bool): accepted; submodules' states keep the model's names.
        strict (bool): as for Module.load_state_dict().
        broadcast_from_rank0 (bool): whether rank 0 alone has the full state that is taken.
        flatten_optimizer_state_dict (bool): an optimizer's state as one flat dict.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False

    def __post_init__(self):
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError(
                "StateDictOptions(): broadcast_from_rank0 needs full_state_dict; got False"
            )


# ---- names


def _clean_name(model, name):
    """A parameter's name without what wrappers have put into it."""
    kept, module = [], model
    for part in name.split("."):
        wrapped = isinstance(module, nn.parallel.DistributedDataParallel) and part == "module"
        if not wrapped and part not in _WRAPPERS:
            kept.append(part)
        module = getattr(module, part, None)
    return ".".join(kept)


def _frozen(model):
    return {name for name, p in model.named_parameters() if not p.requires_grad}


@contextlib.contextmanager
def _sharded(model):
    """While entered, modules of the older class give and take parts."""
    from facula.distributed import fsdp

    if not any(isinstance(m, fsdp.FullyShardedDataParallel) for m in model.modules()):
        yield
        return
    with fsdp.FullyShardedDataParallel.state_dict_type(
        model, fsdp.StateDictType.SHARDED_STATE_DICT
    ):
        yield


# ---- values


def _is_first():
    return not dist.is_initialized() or dist.get_rank() == 0


def _given(state, options):
    """A flat or nested state as the options want it."""

    def convert(value):
        if isinstance(value, dict):
            return {k: convert(v) for k, v in value.items()}
        if not isinstance(value, facula.Tensor):
            return value
        if options.full_state_dict and hasattr(value, "full_tensor"):
            value = value.full_tensor()
        return value.cpu() if options.cpu_offload else value

    found = convert(state)
    return found if _is_first() or not (options.full_state_dict and options.cpu_offload) else {}


def _taken(own, value, options):
    """A value in the form of the tensor `own` that takes it: with broadcast_from_rank0 any."""
    if not isinstance(own, facula.Tensor):
        return value
    is_spread = hasattr(own, "device_mesh")
    if options.broadcast_from_rank0:
        if not _is_first():
            value = facula.empty(own.shape, dtype=own.dtype)
        value = value.detach().to(own.dtype).contiguous()
        dist.broadcast(value, 0)
    if not is_spread or hasattr(value, "device_mesh"):
        return value
    from facula.distributed.tensor import distribute_tensor

    return distribute_tensor(value, own.device_mesh, own.placements, src_data_rank=None)


# ---- models


def get_model_state_dict(model, *, submodules=None, options=None):
    """The state of a model, whose parts stay DTensors, by names without wrappers' parts.

    Args:
        model (Module): perhaps wrapped (DistributedDataParallel, compile, checkpoint_wrapper) or
            sharded.
        submodules (set of Module): those whose state is wanted; all if None.
        options (StateDictOptions): how.

    Returns:
        dict from names to tensors

    Example:
        >>> from facula.distributed.checkpoint.state_dict import get_model_state_dict
        >>> sorted(get_model_state_dict(facula.nn.Linear(1, 1)))
        ['bias', 'weight']
    """
    options = options or StateDictOptions()
    with _sharded(model):
        state = model.state_dict()
    if options.ignore_frozen_params:
        frozen = _frozen(model)
        state = {k: v for k, v in state.items() if k not in frozen}
    if submodules is not None:
        wanted = [f"{name}." for name, m in model.named_modules() if m in set(submodules)]
        state = {k: v for k, v in state.items() if k.startswith(tuple(wanted))}
    return _given({_clean_name(model, k): v for k, v in state.items()}, options)


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Give a model its state.

    Args:
        model (Module): as for get_model_state_dict().
        model_state_dict (dict): as that gives it; with options.full_state_dict whole tensors.
        options (StateDictOptions): how.

    Returns:
        the missing and the unexpected keys, as of Module.load_state_dict()

    Raises:
        RuntimeError: options.strict, and keys are missing or unexpected.
    """
    options = options or StateDictOptions()
    with _sharded(model):
        own = model.state_dict()
        found = {}
        for key, value in own.items():
            name = _clean_name(model, key)
            if name in model_state_dict or options.broadcast_from_rank0:
                found[key] = _taken(value, model_state_dict.get(name), options)
        known = {_clean_name(model, key) for key in own}
        found.update({k: v for k, v in model_state_dict.items() if k not in known})
        return model.load_state_dict(found, strict=options.strict)


# ---- optimizers


def _listed(optimizers):
    return tuple(optimizers) if isinstance(optimizers, Iterable) else (optimizers,)


def _names_of_params(model):
    return {p: _clean_name(model, name) for name, p in model.named_parameters()}


def _make_state(optimizer):
    """Lets an optimizer make the state that it will have, by a step that changes nothing."""
    if optimizer.state:
        return
    params = [p for group in optimizer.param_groups for p in group["params"]]
    if any(p.grad is not None for p in params):
        return
    rates = [group.get("lr") for group in optimizer.param_groups]
    for p in params:
        if p.requires_grad:
            p.grad = facula.zeros_like(p)
    for group in optimizer.param_groups:
        if "lr" in group:
            is_tensor = isinstance(group["lr"], facula.Tensor)
            group["lr"] = facula.zeros_like(group["lr"]) if is_tensor else 0.0
    optimizer.step(closure=None)
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if "lr" in group:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _by_name(optimizer, names):
    """An optimizer's state with names of parameters for their numbers."""
    saved = optimizer.state_dict()
    params = [p for group in optimizer.param_groups for p in group["params"]]
    numbers = [n for group in saved["param_groups"] for n in group["params"]]
    name_of = {n: names[p] for n, p in zip(numbers, params, strict=True)}
    groups = [{**g, "params": [name_of[n] for n in g["params"]]} for g in saved["param_groups"]]
    return {
        "state": {name_of.get(n, n): value for n, value in saved["state"].items()},
        "param_groups": groups,
    }


def _flat(state):
    found = {
        f"state.{name}.{key}": value
        for name, values in state["state"].items()
        for key, value in values.items()
    }
    for group in state["param_groups"]:
        for name in group["params"]:
            settings = {k: v for k, v in group.items() if k != "params"}
            found.update({f"param_groups.{name}.{k}": v for k, v in settings.items()})
    return found


def _nested(flat, optimizer, names):
    """The state by names of what `_flat` gave, for the groups of an optimizer."""
    groups, state = [], {}
    for group in optimizer.param_groups:
        params = [names[p] for p in group["params"]]
        settings = {
            k: flat.get(f"param_groups.{params[0]}.{k}", v) if params else v
            for k, v in group.items()
            if k != "params"
        }
        groups.append({**settings, "params": params})
        for name in params:
            prefix = f"state.{name}."
            values = {k[len(prefix) :]: v for k, v in flat.items() if k.startswith(prefix)}
            if values:
                state[name] = values
    return {"state": state, "param_groups": groups}


def get_optimizer_state_dict(model, optimizers, *, submodules=None, options=None):
    """The states of optimizers as one, by names of parameters.

    An optimizer that has no state yet makes it, by a step at a learning rate of 0.

    Args:
        model (Module): whose parameters they have.
        optimizers (Optimizer or several): none with a parameter of another.
        submodules (set of Module): those whose parameters' state is wanted; all if None.
        options (StateDictOptions): how.

    Returns:
        {"state": {name: state}, "param_groups": [settings with "params": [names]]}, or a flat dict
        with options.flatten_optimizer_state_dict
    """
    options = options or StateDictOptions()
    names = _names_of_params(model)
    merged = {"state": {}, "param_groups": []}
    for optimizer in _listed(optimizers):
        _make_state(optimizer)
        found = _by_name(optimizer, names)
        merged["state"].update(found["state"])
        merged["param_groups"] += found["param_groups"]
    if submodules is not None:
        wanted = {names[p] for m in submodules for p in m.parameters()}
        merged["state"] = {k: v for k, v in merged["state"].items() if k in wanted}
        for group in merged["param_groups"]:
            group["params"] = [name for name in group["params"] if name in wanted]
    if options.flatten_optimizer_state_dict:
        merged = _flat(merged)
    return _given(merged, options)


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None):
    """Give optimizers their states.

    Args:
        model (Module): whose parameters they have.
        optimizers (Optimizer or several): as for get_optimizer_state_dict().
        optim_state_dict (dict): as that gives it; with options.full_state_dict whole tensors.
        options (StateDictOptions): how.

    Raises:
        ValueError: the state has no group with an optimizer's parameters.
    """
    options = options or StateDictOptions()
    names = _names_of_params(model)
    if options.broadcast_from_rank0:
        optim_state_dict = _without_tensors_from_first(optim_state_dict)
    for optimizer in _listed(optimizers):
        _make_state(optimizer)
        state = optim_state_dict
        if "param_groups" not in state:
            state = _nested(state, optimizer, names)
        _load_by_name(optimizer, state, names, options)


def _without_tensors_from_first(state):
    """Everything of rank 0's state but tensors, for all ranks; there the tensors, too."""

    def strip(value):
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items()}
        return None if isinstance(value, facula.Tensor) else value

    told = [strip(state) if _is_first() else None]
    dist.broadcast_object_list(told, 0)
    return state if _is_first() else told[0]


def _load_by_name(optimizer, state, names, options):
    own = optimizer.state_dict()
    found = {"state": {}, "param_groups": []}
    settings_of = {name: g for g in state["param_groups"] for name in g["params"]}
    for group, saved in zip(optimizer.param_groups, own["param_groups"], strict=True):
        settings = {}
        for param, number in zip(group["params"], saved["params"], strict=True):
            name = names[param]
            if name not in settings_of:
                raise ValueError(
                    f"set_optimizer_state_dict(): expected a group with {name!r}; got groups of "
                    f"{sorted(settings_of)[:5]}"
                )
            settings = settings_of[name]
            if name in state["state"]:
                mine = own["state"].get(number, {})
                found["state"][number] = {
                    k: _taken(mine.get(k), v, options) for k, v in state["state"][name].items()
                }
        settings = {k: v for k, v in settings.items() if k != "params"}
        found["param_groups"].append({**saved, **settings, "params": saved["params"]})
    optimizer.load_state_dict(found)


# ---- both


def get_state_dict(model, optimizers, *, submodules=None, options=None):
    """The states of a model and of its optimizers: see the two functions.

    Returns:
        dict, dict
    """
    more = {"submodules": submodules, "options": options}
    return (
        get_model_state_dict(model, **more),
        get_optimizer_state_dict(model, optimizers, **more) if _listed(optimizers) else {},
    )


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Give a model and its optimizers their states: see the two functions.

    Returns:
        the missing and the unexpected keys of the model
    """
    from_first = options is not None and options.broadcast_from_rank0
    if _listed(optimizers) and (optim_state_dict or from_first):
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


def _patch_model_state_dict(model, *, options=None):
    """Make `model.state_dict` and `load_state_dict` give and take what the functions here do.

    Args:
        model (Module): as for `get_model_state_dict`.
        options (StateDictOptions): how.
    """
    given = _with_own_methods(model, "state_dict", "load_state_dict")

    def state_dict():
        """See get_model_state_dict()."""
        with given():
            return get_model_state_dict(model, options=options)

    def load_state_dict(state_dict):
        """See set_model_state_dict()."""
        with given():
            return set_model_state_dict(model, state_dict, options=options)

    model.state_dict, model.load_state_dict = state_dict, load_state_dict


def _patch_optimizer_state_dict(model, *, optimizers, options=None):
    """Make optimizers' `state_dict` and `load_state_dict` go by names of the model's parameters.

    Args:
        model (Module): whose parameters they have.
        optimizers (Optimizer or tuple): each gives and takes the state of all.
        options (StateDictOptions): how.
    """
    optimizers = tuple(_listed(optimizers))
    given = [_with_own_methods(each, "state_dict", "load_state_dict") for each in optimizers]

    def own():
        stack = contextlib.ExitStack()
        for each in given:
            stack.enter_context(each())
        return stack

    def state_dict():
        """See get_optimizer_state_dict()."""
        with own():
            return get_optimizer_state_dict(model, optimizers, options=options)

    def load_state_dict(state_dict):
        """See set_optimizer_state_dict()."""
        with own():
            return set_optimizer_state_dict(model, optimizers, state_dict, options=options)

    for each in optimizers:
        each.state_dict, each.load_state_dict = state_dict, load_state_dict


def _with_own_methods(owner, *names):
    """A context in which methods that were replaced in an object are those of its class."""

    @contextlib.contextmanager
    def given():
        replaced = {name: vars(owner).pop(name) for name in names if name in vars(owner)}
        try:
            yield
        finally:
            vars(owner).update(replaced)

    return given
