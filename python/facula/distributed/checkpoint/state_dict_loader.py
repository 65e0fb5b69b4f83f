"""Loading of states that are spread over ranks, also over others than those that saved them."""

from __future__ import annotations

from facula.distributed.checkpoint._steps import Ranks
from facula.distributed.checkpoint.default_planner import DefaultLoadPlanner
from facula.distributed.checkpoint.filesystem import FileSystemReader
from facula.distributed.checkpoint.state_dict_saver import _has_ranks, _state_of
from facula.distributed.checkpoint.stateful import Stateful

__all__ = ["load", "load_state_dict"]


def load(
    state_dict,
    *,
    checkpoint_id=None,
    storage_reader=None,
    planner=None,
    process_group=None,
    no_dist=False,
):
    """Fill a state from a checkpoint: tensors in place, everything else by replacing it.

    Each rank reads what covers its own pieces, whoever wrote them.

    Args:
        state_dict (dict): what is wanted, as for `save`; objects that have a state_dict() take
            theirs by load_state_dict().
        checkpoint_id: the folder.
        storage_reader (StorageReader): where from; FileSystemReader(checkpoint_id) if None.
        planner (LoadPlanner): decides who reads what; DefaultLoadPlanner() if None.
        process_group (ProcessGroup): the ranks; the default group, if there is one, if None.
        no_dist (bool): whether this process loads alone.

    Raises:
        RuntimeError: neither checkpoint_id nor storage_reader.
        CheckpointException: on all ranks, where one could not load: no checkpoint, an entry that it
            lacks, another size, a damaged file.
    """
    if storage_reader is None:
        if checkpoint_id is None:
            raise RuntimeError("load(): expected checkpoint_id or storage_reader; got neither")
        storage_reader = FileSystemReader(checkpoint_id)
    elif checkpoint_id is not None:
        storage_reader.reset(checkpoint_id)
    ranks = Ranks(process_group, _has_ranks(no_dist), 0)
    states = _state_of(state_dict)
    _load(states, storage_reader, ranks, planner)
    for key, known in state_dict.items():
        if isinstance(known, Stateful):
            known.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def load_state_dict(
    state_dict,
    storage_reader,
    process_group=None,
    coordinator_rank=0,
    no_dist=False,
    planner=None,
):
    """Fill a state, by the function's name of old: see `load`."""
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _load_state_dict(
    state_dict,
    storage_reader,
    process_group=None,
    coordinator_rank=0,
    no_dist=False,
    planner=None,
):
    ranks = Ranks(process_group, _has_ranks(no_dist), coordinator_rank)
    _load(state_dict, storage_reader, ranks, planner)


def _load(state_dict, reader, ranks, planner):
    planner = DefaultLoadPlanner() if planner is None else planner

    def local_plan():
        metadata = reader.read_metadata()
        planner.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        reader.set_up_storage_reader(metadata, ranks.is_coordinator)
        return reader.prepare_local_plan(planner.create_local_plan())

    def global_plan(plans):
        return reader.prepare_global_plan(planner.create_global_plan(plans))

    def read():
        reader.read_data(planner.finish_plan(plan), planner).wait()

    plan = ranks.reduce_scatter("plan", local_plan, global_plan)
    ranks.all_reduce("read", read, lambda results: None)
