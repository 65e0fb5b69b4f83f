"""States of optimizers, loaded before there is an optimizer."""

from __future__ import annotations

import facula
from facula.distributed.checkpoint._nested_dict import set_element
from facula.distributed.checkpoint.default_planner import DefaultLoadPlanner
from facula.distributed.checkpoint.metadata import TensorStorageMetadata
from facula.distributed.checkpoint.state_dict_loader import load_state_dict

__all__ = ["load_sharded_optimizer_state_dict"]


def load_sharded_optimizer_state_dict(
    model_state_dict, optimizer_key, storage_reader, planner=None
):
    """Load an optimizer's state, cut as the model's parameters are.

    Args:
        model_state_dict (dict): from names of parameters to tensors. A state of the size of a
            DTensor becomes a DTensor with its placements; all others are whole on each rank.
        optimizer_key (str): where the checkpoint has the state, saved with parameters' names.
        storage_reader (StorageReader): where from.
        planner (LoadPlanner): decides who reads what; DefaultLoadPlanner() if None.

    Returns:
        dict: from optimizer_key to the state

    Raises:
        ValueError: the checkpoint has no such key.
        CheckpointException: on all ranks, where one could not load.
    """
    metadata = storage_reader.read_metadata()
    paths = metadata.planner_data or {}
    state = {}
    for fqn, entry in metadata.state_dict_metadata.items():
        path = paths.get(fqn, (fqn,))
        if path[0] != optimizer_key:
            continue
        value = None
        if isinstance(entry, TensorStorageMetadata):
            value = _empty(entry, _parameter(model_state_dict, path))
        set_element(state, path, value)
    if not state:
        raise ValueError(
            f"load_sharded_optimizer_state_dict(): expected entries below {optimizer_key!r} in the "
            f"checkpoint; got {sorted({p[0] for p in paths.values()})[:5]}"
        )
    load_state_dict(state, storage_reader, planner=planner or DefaultLoadPlanner())
    return state


def _parameter(model_state_dict, path):
    """The parameter that an entry belongs to: (key, "state", name of the parameter, its name)."""
    return model_state_dict.get(path[2]) if len(path) > 2 else None


def _empty(entry, parameter):
    dtype = entry.properties.dtype
    if hasattr(parameter, "placements") and parameter.size() == entry.size:
        return facula.empty_like(parameter, dtype=dtype, requires_grad=False)
    return facula.empty(entry.size, dtype=dtype)
