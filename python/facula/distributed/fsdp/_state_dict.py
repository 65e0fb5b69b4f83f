"""What the state_dict of a FullyShardedDataParallel has: whole, spread or local tensors."""

from __future__ import annotations

import facula.distributed as dist
from facula.distributed.fsdp import api
from facula.distributed.fsdp._fully_shard._fully_shard import read_places, show_shards
from facula.distributed.tensor._api import DTensor, distribute_tensor
from facula.distributed.tensor._dtensor_spec import DTensorSpec

_FULL, _LOCAL, _SHARDED = (
    api.StateDictType.FULL_STATE_DICT,
    api.StateDictType.LOCAL_STATE_DICT,
    api.StateDictType.SHARDED_STATE_DICT,
)
_CONFIGS = {
    _FULL: (api.FullStateDictConfig, api.FullOptimStateDictConfig),
    _LOCAL: (api.LocalStateDictConfig, api.LocalOptimStateDictConfig),
    _SHARDED: (api.ShardedStateDictConfig, api.ShardedOptimStateDictConfig),
}


def settings(kind, config=None, optim_config=None):
    """The StateDictSettings of a kind.

    Args:
        kind (StateDictType): what is given.
        config (StateDictConfig): how; default that of the kind.
        optim_config (OptimStateDictConfig): the same for the optimizer.

    Returns:
        StateDictSettings

    Raises:
        RuntimeError: a config is of another kind.
    """
    made = []
    for given, wanted in zip((config, optim_config), _CONFIGS[kind], strict=True):
        given = wanted() if given is None else given
        if type(given) is not wanted:
            raise RuntimeError(
                f"state_dict_type(): expected a {wanted.__name__} for {kind.name}; "
                f"got a {type(given).__name__}"
            )
        made.append(given)
    return api.StateDictSettings(kind, *made)


def default_settings():
    """Whole tensors at all ranks; an optimizer's state stays where it is."""
    return settings(_FULL, None, api.FullOptimStateDictConfig())


def register(wrapper):
    """Have a wrapper's state_dict and load_state_dict follow its settings."""
    wrapper.register_state_dict_pre_hook(show_shards)
    wrapper._register_state_dict_hook(_after_state_dict)
    wrapper.register_load_state_dict_pre_hook(_before_load)
    wrapper.register_load_state_dict_post_hook(read_places)


_PREFIX = "_fsdp_wrapped_module."


def _after_state_dict(wrapper, state_dict, prefix, local_metadata):
    chosen = wrapper._state_dict_settings
    old = prefix + _PREFIX
    for key in [k for k in state_dict if k.startswith(old)]:
        state_dict[prefix + key[len(old) :]] = state_dict.pop(key)
    keep = not getattr(chosen.state_dict_config, "rank0_only", False) or dist.get_rank() == 0
    for key in [k for k in state_dict if k.startswith(prefix)]:
        value = _given(state_dict[key], chosen)
        if keep:
            state_dict[key] = value
        else:
            del state_dict[key]


def _given(value, chosen):
    if isinstance(value, DTensor):
        if chosen.state_dict_type is _FULL:
            value = value.full_tensor().detach()
        elif chosen.state_dict_type is _LOCAL:
            value = value._local_tensor.detach()
    return value.cpu() if chosen.state_dict_config.offload_to_cpu else value


def _before_load(wrapper, state_dict, prefix, *args):
    show_shards(wrapper)
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[prefix + _PREFIX + key[len(prefix) :]] = state_dict.pop(key)
    group = wrapper._fsdp_state.group
    if group is None:
        return
    mine = {id(p.sharded_param): p for p in group.params}
    kind = wrapper._state_dict_settings.state_dict_type
    inner = wrapper._fsdp_wrapped_module
    for name, param in inner.named_parameters(remove_duplicate=False):
        key = prefix + _PREFIX + name.replace("_checkpoint_wrapped_module.", "")
        if id(param) in mine and key in state_dict:
            state_dict[key] = as_spread(state_dict[key], param, kind is _LOCAL)


def as_spread(value, param, is_local=False):
    """A tensor that lies as a parameter does.

    Args:
        value (Tensor): whole, or a DTensor.
        param (DTensor): the parameter.
        is_local (bool): the value is this rank's part.

    Returns:
        DTensor
    """
    spec = param._spec
    if isinstance(value, DTensor):
        return value.redistribute(placements=spec.placements)
    if is_local:
        meta = spec.tensor_meta._replace(dtype=value.dtype)
        return DTensor(value, DTensorSpec(spec.mesh, spec.placements, meta))
    return distribute_tensor(value.detach(), spec.mesh, spec.placements, src_data_rank=None)
