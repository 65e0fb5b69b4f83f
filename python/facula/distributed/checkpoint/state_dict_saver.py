"""Saving of states that are spread over ranks."""

from __future__ import annotations

from enum import Enum
from weakref import WeakKeyDictionary

import facula.distributed as dist
from facula.distributed.checkpoint._steps import Ranks
from facula.distributed.checkpoint.api import CheckpointException
from facula.distributed.checkpoint.default_planner import DefaultSavePlanner
from facula.distributed.checkpoint.filesystem import FileSystemWriter
from facula.distributed.checkpoint.staging import BlockingAsyncStager
from facula.distributed.checkpoint.stateful import Stateful

__all__ = ["AsyncCheckpointerType", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(Enum):
    """Who saves while training goes on."""

    THREAD = "thread"
    PROCESS = "process"


def _has_ranks(no_dist):
    return not no_dist and dist.is_available() and dist.is_initialized()


def _state_of(state_dict):
    """The states of the objects that have some in their place."""
    if not isinstance(state_dict, dict):
        raise TypeError(f"save(): expected a dict as state_dict; got {type(state_dict).__name__}")
    return {k: v.state_dict() if isinstance(v, Stateful) else v for k, v in state_dict.items()}


def _writer_of(storage_writer, checkpoint_id, what):
    if storage_writer is None:
        if checkpoint_id is None:
            raise RuntimeError(f"{what}(): expected checkpoint_id or storage_writer; got neither")
        return FileSystemWriter(checkpoint_id)
    if checkpoint_id is not None:
        storage_writer.reset(checkpoint_id)
    return storage_writer


def save(
    state_dict,
    *,
    checkpoint_id=None,
    storage_writer=None,
    planner=None,
    process_group=None,
    no_dist=False,
    use_collectives=True,
):
    """Save a state that is spread over ranks, each piece once.

    Ranks must have the same keys for what they share. Nothing counts until all have written: an
    earlier checkpoint in the folder stays whole until then.

    Args:
        state_dict (dict): nested dicts and lists of tensors (DTensors: a piece on each rank) and of
            whatever can be pickled; objects that have a state_dict().
        checkpoint_id: the folder.
        storage_writer (StorageWriter): where to; FileSystemWriter(checkpoint_id) if None.
        planner (SavePlanner): decides who writes what; DefaultSavePlanner() if None.
        process_group (ProcessGroup): the ranks; the default group, if there is one, if None.
        no_dist (bool): whether this process saves alone.
        use_collectives (bool): accepted; ranks always agree on what they write.

    Returns:
        Metadata

    Raises:
        RuntimeError: neither checkpoint_id nor storage_writer.
        CheckpointException: on all ranks, where one could not write.

    Example:
        >>> import tempfile
        >>> from facula.distributed import checkpoint
        >>> state = {"model": {"w": facula.ones(2)}, "step": 3}
        >>> folder = tempfile.mkdtemp()
        >>> _ = checkpoint.save(state, checkpoint_id=folder)
        >>> state = {"model": {"w": facula.zeros(2)}, "step": 0}
        >>> checkpoint.load(state, checkpoint_id=folder)
        >>> state
        {'model': {'w': tensor([1., 1.])}, 'step': 3}
    """
    writer = _writer_of(storage_writer, checkpoint_id, "save")
    ranks = Ranks(process_group, _has_ranks(no_dist), 0)
    return _save(_state_of(state_dict), writer, ranks, planner)


# Calls of saving threads must not stand between those of training, nor between each other: for each
# group there is one of its own, with a thread that saves one state after the other, or that waits
# for a process which does.
_savers = WeakKeyDictionary()
_processes = WeakKeyDictionary()


class _NoGroup:
    """Stands for the group of a process that saves alone."""


def _saver(process_group, use_dist):
    from concurrent.futures import ThreadPoolExecutor

    key = (process_group or dist.group.WORLD) if use_dist else _NoGroup
    if key not in _savers:
        ranks = dist.get_process_group_ranks(key) if use_dist else None
        own = dist.new_group(ranks, use_local_synchronization=True) if use_dist else None
        _savers[key] = own, ThreadPoolExecutor(1, "facula async_save")
    return _savers[key]


def _saving_process(process_group, use_dist):
    from concurrent.futures import ThreadPoolExecutor

    from facula.distributed.checkpoint._saving_process import SavingProcess

    key = (process_group or dist.group.WORLD) if use_dist else _NoGroup
    if key not in _processes:
        process = SavingProcess(key if use_dist else None)
        _processes[key] = process, ThreadPoolExecutor(1, "facula async_save")
    return _processes[key]


def async_save(
    state_dict,
    *,
    checkpoint_id=None,
    storage_writer=None,
    planner=None,
    process_group=None,
    async_checkpointer_type=AsyncCheckpointerType.THREAD,
    async_stager=None,
    no_dist=False,
    use_collectives=True,
):
    """Copy a state, and save the copy on a thread or in a process while training goes on.

    Args:
        state_dict, checkpoint_id, storage_writer, planner, process_group, no_dist,
            use_collectives: as for `save`. The ranks get a group of their own at the first call.
        async_checkpointer_type (AsyncCheckpointerType): THREAD, or PROCESS: each rank starts a
            process at the first call, which gets a copy of the state. The program's main module
            must be one that can be imported, as for multiprocessing's "spawn".
        async_stager (AsyncStager): copies the state; BlockingAsyncStager() if None.

    Returns:
        Future: its result() is what `save` returns, or raises

    Raises:
        RuntimeError: neither checkpoint_id nor storage_writer.
        TypeError: no AsyncCheckpointerType.
    """
    if not isinstance(async_checkpointer_type, AsyncCheckpointerType):
        raise TypeError(
            "async_save(): expected an AsyncCheckpointerType; got "
            f"{type(async_checkpointer_type).__name__}"
        )
    from facula.distributed._world import _of_thread

    writer = _writer_of(storage_writer, checkpoint_id, "async_save")
    use_dist = _has_ranks(no_dist)
    by_process = async_checkpointer_type is AsyncCheckpointerType.PROCESS
    saver, thread = (_saving_process if by_process else _saver)(process_group, use_dist)
    stager = async_stager or (writer if hasattr(writer, "stage") else BlockingAsyncStager())
    copy, groups = stager.stage(_state_of(state_dict)), _of_thread.groups

    def work():
        _of_thread.groups = groups  # a thread that is a rank has groups of its own
        if by_process:
            return saver.save(copy, writer, planner, use_dist)
        return _save(copy, writer, Ranks(saver, use_dist, 0), planner)

    return thread.submit(work)


def save_state_dict(
    state_dict,
    storage_writer,
    process_group=None,
    coordinator_rank=0,
    no_dist=False,
    planner=None,
):
    """Save a state, by the function's name of old: see `save`."""
    storage_writer.reset()
    return _save_state_dict(
        state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner
    )


def _save_state_dict(
    state_dict,
    storage_writer,
    process_group=None,
    coordinator_rank=0,
    no_dist=False,
    planner=None,
):
    ranks = Ranks(process_group, _has_ranks(no_dist), coordinator_rank)
    return _save(state_dict, storage_writer, ranks, planner)


def _save(state_dict, writer, ranks, planner):
    planner = DefaultSavePlanner() if planner is None else planner
    metadata = None

    def local_plan():
        planner.set_up_planner(state_dict, writer.storage_meta(), ranks.is_coordinator)
        writer.set_up_storage_writer(ranks.is_coordinator)
        return writer.prepare_local_plan(planner.create_local_plan())

    def global_plan(plans):
        nonlocal metadata
        plans, metadata = planner.create_global_plan(plans)
        return writer.prepare_global_plan(plans)

    def write():
        return writer.write_data(planner.finish_plan(plan), planner).wait()

    def finish(results):
        writer.finish(metadata, results)
        return metadata

    plan = ranks.reduce_scatter("plan", local_plan, global_plan)
    try:
        return ranks.all_reduce("write", write, finish)
    except CheckpointException:
        # Ranks that have written theirs must not leave them to a checkpoint that will never be.
        writer.discard()
        raise
