"""The state of optimizers over spread parameters, by names, as whole or spread tensors."""

from __future__ import annotations

import facula
import facula.distributed as dist
from facula.distributed.fsdp._fully_shard._fully_shard import show_shards
from facula.distributed.fsdp._state_dict import as_spread
from facula.distributed.fsdp.api import StateDictType
from facula.distributed.tensor._api import DTensor

_WRAPPERS = ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")


def _names(model):
    """The name of each parameter, without those of wrappers."""
    for part in model.modules():
        if "_fsdp_state" in vars(part):
            show_shards(part)
    found = {}
    for name, p in model.named_parameters():
        for wrapper in _WRAPPERS:
            name = name.replace(wrapper, "")
        found[p] = name
    return found


def _params(optim):
    return [p for group in optim.param_groups for p in group["params"]]


def state_dict(model, optim, given, kind, config):
    """The state of an optimizer by names of parameters.

    Args:
        model (Module): whose parameters they are.
        optim (Optimizer): the optimizer.
        given (dict): its state_dict, if it is not to be asked for it.
        kind (StateDictType): whole, spread or local tensors.
        config (OptimStateDictConfig): how.

    Returns:
        dict: of "state" and "param_groups"; empty where only rank 0 is to have it
    """
    names = _names(model)
    by_number = [names[p] for p in _params(optim)]
    given = optim.state_dict() if given is None else given

    def name_of(key):
        return by_number[key] if isinstance(key, int) else key

    state = {
        name_of(key): {k: _given(v, kind, config) for k, v in values.items()}
        for key, values in given["state"].items()
    }
    if getattr(config, "rank0_only", False) and dist.get_rank() != 0:
        return {}
    groups = [
        {**group, "params": [name_of(key) for key in group["params"]]}
        for group in given["param_groups"]
    ]
    return {"state": state, "param_groups": groups}


def _given(value, kind, config):
    if not isinstance(value, facula.Tensor):
        return value
    value = value.detach()
    if isinstance(value, DTensor):
        if kind is StateDictType.FULL_STATE_DICT:
            value = value.full_tensor().detach()
        elif kind is StateDictType.LOCAL_STATE_DICT:
            value = value._local_tensor
    return value.cpu() if config.offload_to_cpu else value


def to_load(model, optim, given, keep_names=False):
    """What `optim.load_state_dict` takes.

    Args:
        model (Module): whose parameters they are.
        optim (Optimizer): the optimizer; None for numbers in the order of the model's parameters.
        given (dict): a result of `state_dict`.
        keep_names (bool): names as keys, in place of numbers.

    Returns:
        dict
    """
    names = _names(model)
    params = list(names) if optim is None else _params(optim)
    numbers = {names[p]: i for i, p in enumerate(params)}
    by_name = {names[p]: p for p in params}
    state = {}
    for name, values in given["state"].items():
        if name not in numbers:
            continue
        key = name if keep_names else numbers[name]
        state[key] = {k: _spread(v, by_name[name]) for k, v in values.items()}
    groups = [
        {**g, "params": [n if keep_names else numbers[n] for n in g["params"] if n in numbers]}
        for g in given["param_groups"]
    ]
    return {"state": state, "param_groups": groups}


def _spread(value, param):
    if not isinstance(value, facula.Tensor) or not isinstance(param, DTensor):
        return value
    if isinstance(value, DTensor) or value.shape == param.shape:
        return as_spread(value, param)
    # This rank's part; a number of steps stays as it is.
    return as_spread(value, param, True) if value.dim() else value


def rekeyed(given, by_name, model, optim_input, optim):
    """An optimizer's state with names of parameters as keys, or with their numbers."""
    names = _names(model)
    params = list(names)
    if optim is not None:
        params = _params(optim)
    elif optim_input is not None:
        params = [
            p
            for each in optim_input
            for p in (each["params"] if isinstance(each, dict) else [each])
        ]
    keys = {i: names[p] for i, p in enumerate(params)}
    if not by_name:
        keys = {name: i for i, name in keys.items()}
    state = {keys[k]: v for k, v in given["state"].items()}
    groups = [{**g, "params": [keys[k] for k in g["params"]]} for g in given["param_groups"]]
    return {"state": state, "param_groups": groups}
