"""The groups of this process, or of this thread where ranks are threads; made and taken down."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import traceback
import warnings
from datetime import timedelta
from typing import NamedTuple

import facula
from facula.distributed import _mpi, _nccl
from facula.distributed._backends import (  # noqa: F401
    Backend,
    BackendConfig,
    is_backend_available,
)
from facula.distributed._connect import connected_core, new_engine
from facula.distributed._group_of_devices import GroupOfDevices
from facula.distributed._process_group import ProcessGroup, ProcessGroupGloo, ProcessGroupMPI
from facula.distributed._process_group_nccl import ProcessGroupNCCL
from facula.distributed._progress import note_process

default_pg_timeout = timedelta(minutes=30)

_NO_GROUP = (
    "Default process group has not been initialized, please make sure to call init_process_group."
)


class _Groups:
    def __init__(self):
        self.default_pg = None
        self.pg_map = {}  # group -> (backend, store)
        self.pg_names = {}
        self.pg_group_ranks = {}  # group -> {global rank: rank in the group}
        self.pg_backend_config = {}
        self.tags_to_pg = {}
        self.pg_to_tag = {}
        self.group_count = 0
        self.made = {}  # name -> how often a group of this name was made
        self.pg_coalesce_state = {}


_of_process = _Groups()


class _OfThread(threading.local):
    groups = _of_process  # of threads that are no ranks


_of_thread = _OfThread()


class _World:
    """The groups; each thread that is a rank has its own."""

    # Not __getattr__, which would be asked after an error has been made at each call of all.
    def __getattribute__(self, name):
        return getattr(_of_thread.groups, name)

    def __setattr__(self, name, value):
        setattr(_of_thread.groups, name, value)


_world = _World()


class _WORLDMeta(type):
    @property
    def WORLD(cls):
        """The group of all ranks, or None."""
        return _world.default_pg

    @WORLD.setter
    def WORLD(cls, group):
        _world.default_pg = group


class group(metaclass=_WORLDMeta):
    """What stands for all ranks."""


class GroupMember(metaclass=_WORLDMeta):
    """What stands for all ranks, and for a group that this rank is not in."""

    NON_GROUP_MEMBER = -100


# --- the default group


def _get_default_group():
    default = _world.default_pg
    if default is None:
        raise ValueError(_NO_GROUP)
    return default


def _group_or_default(pg):
    return _get_default_group() if pg is None else pg


def _rank_not_in_group(group):
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def is_initialized():
    """Whether there is a default process group.

    Returns:
        bool

    Example:
        >>> facula.distributed.is_initialized()
        False
    """
    return _world.default_pg is not None


def init_process_group(
    backend=None,
    init_method=None,
    timeout=None,
    world_size=-1,
    rank=-1,
    store=None,
    group_name="",
    pg_options=None,
    device_id=None,
    _ranks=None,
    enable_reconfigure=False,
):
    """Make the default process group: each of the ranks calls it.

    Args:
        backend (str): "gloo", "nccl" for tensors of CUDA devices, "mpi" under mpirun, which then
            knows `rank` and `world_size`, "threads" for ranks that are threads of one process, or
            one that was registered; "cpu:gloo,cuda:nccl" names one for each type of device. Default
            that, where there is a CUDA device and NCCL, else "gloo".
        init_method (str): where ranks find each other; default `env://`.
        timeout (timedelta): how long a call waits for other ranks; default 30 minutes, 10 over
            NCCL.
        world_size (int): the number of ranks; with `env://` WORLD_SIZE.
        rank (int): the number of this one; with `env://` RANK.
        store (Store): in place of `init_method`.
        group_name (str): has no effect.
        pg_options (object): options for the backend.
        device_id (device): the accelerator of this process: its communicator is made at once.

    Raises:
        RuntimeError: a backend cannot be used here.
        ValueError: there is a default group, or the arguments contradict each other.
        DistBackendError: ranks did not come; they are named.
    """
    if enable_reconfigure:
        raise NotImplementedError("init_process_group(): no backend of this build can reconfigure")
    if _world.default_pg is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise ValueError("init_process_group(): expected a store or an init_method; got both")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout}"
        )
    from facula.distributed.distributed_c10d import get_debug_level

    get_debug_level()
    backend = Backend(backend or _default_backend())
    device_id = _bound_device(device_id)
    if backend == Backend.MPI:
        rank, world_size = _mpi.world(rank, world_size)
    elif store is not None or backend == "fake":
        if world_size < 1 or not 0 <= rank < world_size:
            raise ValueError(
                "init_process_group(): expected world_size and a rank below it beside a store; "
                f"got {world_size} and {rank}"
            )
    else:
        from facula.distributed.rendezvous import rendezvous

        store, rank, world_size = next(
            iter(
                rendezvous(
                    init_method or "env://",
                    rank,
                    world_size,
                    timeout=timeout or default_pg_timeout,
                )
            )
        )
    ranks = list(range(world_size))
    _world.group_count += 1
    pg = _make_group(ranks, rank, "0", backend, store, timeout, pg_options, "default_pg", device_id)
    _world.default_pg = pg
    note_process()
    _leave_at_exit()


def _default_backend():
    """What serves the devices of this process."""
    has_nccl = facula.cuda.device_count() and _nccl.is_available()
    return "cpu:gloo,cuda:nccl" if has_nccl else "gloo"


def _bound_device(device):
    """A device with an index, or None; ValueError for the CPU or a device without an index."""
    if device is None:
        return None
    device = facula.device(device)
    if device.type == "cpu" or device.index is None:
        raise ValueError(
            f"init_process_group(): expected a device_id of an accelerator with an index; got "
            f"{device}"
        )
    return device


def _make_group(ranks, my_global_rank, name, backend, store, timeout, options, desc, device=None):
    """A connected group, noted in _world; NON_GROUP_MEMBER for a rank that is not in it."""
    if my_global_rank not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    config = BackendConfig(backend)
    by_device = config.device_backend_map
    for kind, of_device in by_device.items():
        if of_device == Backend.NCCL:
            _nccl.check_usable(kind)
    # A name comes again when groups are made anew, with the keys of before still in the store.
    turn = _world.made[name] = _world.made.get(name, 0) + 1
    place = _Place(ranks, ranks.index(my_global_rank), len(ranks), name, turn, store, desc)
    made = {}
    try:
        for kind, of_device in by_device.items():
            if of_device not in made:
                made[of_device] = _backend_group(
                    place, kind, of_device, timeout, options, _eager_device(device, kind)
                )
    except Exception:
        for part in made.values():
            part.shutdown()
        raise
    if len(made) == 1:
        (pg,) = made.values()
        if isinstance(pg, ProcessGroup):
            pg.bound_device_id = device
    else:
        pg = GroupOfDevices({kind: made[b] for kind, b in by_device.items()}, name, desc)
    _world.pg_map[pg] = (backend, store)
    _world.pg_names[pg] = name
    _world.pg_group_ranks[pg] = {r: i for i, r in enumerate(ranks)}
    _world.pg_backend_config[pg] = config
    _world.tags_to_pg.setdefault("", []).append(pg)
    _world.pg_to_tag[pg] = ""
    return pg


class _Place(NamedTuple):
    """Where a process stands in a group that is being made."""

    ranks: list
    rank: int
    size: int
    name: str
    turn: int
    store: object
    desc: str


def _eager_device(device, kind):
    """The device whose communicator is to be made at once; None if it is to be of another kind."""
    return device if device is not None and device.type == kind else None


def _backend_group(place, kind, backend, timeout, options, device):
    """A connected group over one backend."""
    ranks, rank, size, name, turn, store, desc = place
    if backend in Backend._plugins:
        limit = timeout or default_pg_timeout
        return _plugin_group(backend, store, ranks, rank, size, name, limit, options)
    if backend in ("gloo", "threads"):
        limit = timeout or default_pg_timeout
        core = connected_core(store, rank, size, name, limit, ranks, turn)
        return ProcessGroupGloo(rank, size, core, name, str(backend), desc)
    if backend == Backend.NCCL:
        options = _nccl.options_of(options)
        limit = timeout or options._timeout
        settings = _nccl.settings_of(options, device)
        core = connected_core(store, rank, size, name, limit, ranks, turn, settings)
        made = core, name, kind, desc
        return ProcessGroupNCCL(store, rank, size, options, device, _made=made)
    if backend == Backend.MPI:
        core = new_engine(_mpi.engine(), rank, size, name, timeout or default_pg_timeout)
        core.connect([str(r).encode() for r in ranks])  # MPI knows processes by global ranks
        core.start()
        return ProcessGroupMPI(rank, size, core, name, str(backend), desc)
    if backend == "fake":
        from facula.distributed._fake import FakeProcessGroup

        return FakeProcessGroup(rank, size, name, desc)
    raise RuntimeError(
        f"init_process_group(): expected the backend gloo, nccl, mpi, threads or fake, which are "
        f"in this build; got {str(backend)!r}"
    )


def _plugin_group(backend, store, ranks, rank, size, name, timeout, options):
    make, extended = Backend._plugins[backend]
    if not extended:
        pg = make(store, rank, size, timeout)
    else:
        from types import SimpleNamespace

        pg = make(
            SimpleNamespace(
                store=store,
                group_rank=rank,
                group_size=size,
                timeout=timeout,
                group_id=name,
                global_ranks_in_group=ranks,
            ),
            options,
        )
    if isinstance(pg, ProcessGroup):
        pg._set_group_name(name)
    return pg


# --- the end


def destroy_process_group(group=None):
    """Take a group down, or all groups.

    Args:
        group (ProcessGroup): default all.

    Raises:
        AssertionError: there is none.
        ValueError: the group is not one of this process.
    """
    if _rank_not_in_group(group):
        return
    if group is None and _world.default_pg is None:
        raise AssertionError("Process group cannot be None")
    if group is not None and group not in _world.pg_map:
        raise ValueError("Invalid process group specified or has been destroyed.")
    everything = group is None or group is _world.default_pg
    for pg in reversed(list(_world.pg_map)) if everything else [group]:
        if isinstance(pg, ProcessGroup):
            pg.shutdown()
        _drop(pg)
    if everything:
        _world.default_pg = None
        _world.group_count = 0


def _drop(pg):
    _world.pg_map.pop(pg, None)
    _world.pg_names.pop(pg, None)
    _world.pg_group_ranks.pop(pg, None)
    _world.pg_backend_config.pop(pg, None)
    tag = _world.pg_to_tag.pop(pg, "")
    if pg in _world.tags_to_pg.get(tag, []):
        _world.tags_to_pg[tag].remove(pg)


def _abort_process_group(group=None):
    """Make all calls of a group fail, and drop it without waiting."""
    for pg in list(_world.pg_map) if group is None else [group]:
        pg.abort()
        pg._core.leave("", False)
        _drop(pg)
    if group is None or group is _world.default_pg:
        _world.default_pg = None


_finalizer = None


def _leave_at_exit():
    """Have the other ranks told when this process ends, and of the error that it ends with."""
    global _finalizer
    if _finalizer is None or _finalizer != os.getpid():
        from multiprocessing import util

        util.Finalize(None, _leave_all, exitpriority=100)
        _finalizer = os.getpid()


def _leave_all():
    error = _error_of_exit()
    for pg in list(_of_process.pg_map):
        core = getattr(pg, "_core", None)
        if core is not None:
            with contextlib.suppress(Exception):
                core.leave(error, False)


def _error_of_exit():
    """The traceback that this process ends with, as text; empty if it ends well."""
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    if isinstance(error, SystemExit):
        error = error.__context__ if error.code else None
    if error is None or hasattr(sys, "ps1"):
        return ""
    return _text_of_error(error)


def _text_of_error(error):
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return "".join(lines)[-2800:]


# --- groups of some ranks


def get_process_group_ranks(group):
    """The global ranks of a group's members.

    Args:
        group (ProcessGroup): a group, or None for all.

    Returns:
        list of int
    """
    return list(_world.pg_group_ranks[_group_or_default(group)])


def _ranks_of(group):
    if group not in _world.pg_group_ranks:
        raise ValueError(f"Group {group} is not registered, please create group with new_group API")
    return _world.pg_group_ranks[group]


def get_group_rank(group, global_rank):
    """The rank in a group of a global rank.

    Args:
        group (ProcessGroup): the group.
        global_rank (int): the rank in the default group.

    Returns:
        int

    Raises:
        ValueError: it is not in the group.
    """
    if group is GroupMember.WORLD:
        return global_rank
    ranks = _ranks_of(group)
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks[global_rank]


def get_global_rank(group, group_rank):
    """The global rank of a rank in a group.

    Args:
        group (ProcessGroup): the group.
        group_rank (int): the rank in it.

    Returns:
        int

    Raises:
        ValueError: the group has no such rank.
    """
    if group is GroupMember.WORLD:
        return group_rank
    for whole, part in _ranks_of(group).items():
        if part == group_rank:
            return whole
    raise ValueError(f"Group rank {group_rank} is not part of group {group}")


def get_rank(group=None):
    """The number of this process in a group.

    Args:
        group (ProcessGroup): default all ranks.

    Returns:
        int: -1 if it is not in the group.
    """
    if _rank_not_in_group(group):
        return -1
    return _group_or_default(group).rank()


def get_world_size(group=None):
    """The number of ranks in a group.

    Args:
        group (ProcessGroup): default all ranks.

    Returns:
        int: -1 if this process is not in the group.
    """
    if _rank_not_in_group(group):
        return -1
    return _group_or_default(group).size()


def get_backend(group=None):
    """The name of a group's backend.

    Args:
        group (ProcessGroup): default all ranks.

    Returns:
        Backend
    """
    pg = _group_or_default(group)
    if pg not in _world.pg_map:
        raise ValueError("Invalid process group specified")
    return Backend(_world.pg_map[pg][0])


def get_backend_config(group=None):
    """The backends of a group for each device type, as text."""
    return str(_world.pg_backend_config[_group_or_default(group)])


def get_default_backend_for_device(device):
    """The backend that a device type has when none is named.

    Args:
        device (device or str): the device.

    Returns:
        str

    Example:
        >>> facula.distributed.get_default_backend_for_device("cpu")
        'gloo'
    """
    kind = str(device).partition(":")[0]
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"get_default_backend_for_device(): no backend serves {device}")
    return str(Backend.default_device_backend_map[kind])


def get_backend_impl(group=None, device=None):
    """What moves the data of a group, or of its tensors of a device."""
    pg = _resolve_process_group(group) if isinstance(group, str) else group
    return _group_or_default(pg)._get_backend(device)


def set_timeout(timeout, group=None):
    """Set how long later calls of a group wait for other ranks.

    Args:
        timeout (timedelta): the time.
        group (ProcessGroup): default all ranks.
    """
    if not isinstance(timeout, timedelta):
        raise TypeError(f"set_timeout(): expected a timedelta; got {type(timeout).__name__}")
    _group_or_default(group).set_timeout(timeout)


_set_pg_timeout = set_timeout


def get_pg_count():
    """The number of groups of this process."""
    return _world.group_count


def new_group(
    ranks=None,
    timeout=None,
    backend=None,
    pg_options=None,
    use_local_synchronization=False,
    group_desc=None,
    device_id=None,
    sort_ranks=True,
):
    """A group of some of the ranks; all ranks call it, in the same order.

    Args:
        ranks (list of int): the members; default all.
        timeout (timedelta): default that of the backend.
        backend (str): default that of the default group.
        pg_options (object): options for the backend.
        use_local_synchronization (bool): only the members call it.
        group_desc (str): what the group is for.
        device_id (device): the accelerator of this process; default that of the default group.
        sort_ranks (bool): number the members by their global ranks, not as they are given.

    Returns:
        ProcessGroup, or `GroupMember.NON_GROUP_MEMBER` for a rank that is not in it
    """
    default = _get_default_group()
    default_backend, store = _world.pg_map[default]
    size = default.size()
    ranks = list(range(size)) if ranks is None else list(ranks)
    if sort_ranks:
        ranks.sort()
    if len(ranks) > size or len(set(ranks)) != len(ranks):
        raise ValueError(f"new_group(): expected distinct ranks below {size}; got {ranks}")
    if any(not 0 <= r < size for r in ranks):
        raise ValueError(f"new_group(): expected ranks below {size}; got {ranks}")
    if use_local_synchronization:
        # Ranks outside do not count, so the name is made of the members.
        used = [n for n in _world.pg_names.values() if n.startswith(f"ranks{ranks}")]
        name = f"ranks{ranks}#{len(used)}".replace(" ", "")
    else:
        name = str(_world.group_count)
        _world.group_count += 1
    return _make_group(
        ranks,
        default.rank(),
        name,
        Backend(backend or default_backend),
        store,
        timeout,
        pg_options,
        group_desc or "undefined",
        _bound_device(device_id) or default.bound_device_id,
    )


def new_subgroups(
    group_size=None,
    group=None,
    timeout=None,
    backend=None,
    pg_options=None,
    group_desc=None,
):
    """Cut all ranks into groups of equal size.

    Args:
        group_size (int): ranks in each; default the number of devices of a machine.
        group (ProcessGroup): has no effect.
        timeout, backend, pg_options, group_desc: as in `new_group`.

    Returns:
        (ProcessGroup, list): that of this rank, and all
    """
    size = get_world_size()
    group_size = group_size or max(1, facula.cuda.device_count())
    if group_size > size or size % group_size:
        raise ValueError(
            f"new_subgroups(): expected a group_size that divides {size} ranks; got {group_size}"
        )
    lists = [list(range(i, i + group_size)) for i in range(0, size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None
):
    """Several groups, none of which share ranks.

    Args:
        ranks_per_subgroup_list (list of lists): the ranks of each.
        timeout, backend, pg_options, group_desc: as in `new_group`.

    Returns:
        (ProcessGroup, list): that of this rank or None, and all
    """
    if not ranks_per_subgroup_list:
        raise ValueError("new_subgroups_by_enumeration(): expected lists of ranks; got none")
    flat = list(itertools.chain.from_iterable(ranks_per_subgroup_list))
    if len(set(flat)) != len(flat):
        raise ValueError(f"new_subgroups_by_enumeration(): expected each rank once; got {flat}")
    groups = [
        new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        for ranks in ranks_per_subgroup_list
    ]
    mine = next((g for g in groups if not _rank_not_in_group(g)), None)
    return mine, groups


def split_group(
    parent_pg=None,
    split_ranks=None,
    timeout=None,
    pg_options=None,
    group_desc=None,
    backend=None,
):
    """Cut a group into groups; all of its ranks call it.

    Args:
        parent_pg (ProcessGroup): the group; default all ranks.
        split_ranks (list of lists): ranks of the group, none of them twice.
        timeout (timedelta): default that of the backend.
        pg_options (object): options for the backend.
        group_desc (str): what the new groups are for.
        backend (str): those of the group's backends that they keep; default all.

    Returns:
        ProcessGroup, or `GroupMember.NON_GROUP_MEMBER` for a rank in none of the lists

    Raises:
        ValueError: there are no lists, or they do not fit the group.
    """
    if not split_ranks:
        raise ValueError("split_group(): split_ranks cannot be None or empty")
    parent = _group_or_default(parent_pg)
    whole = {part: rank for rank, part in _ranks_of(parent).items()}
    flat = list(itertools.chain.from_iterable(split_ranks))
    if len(set(flat)) != len(flat) or not set(flat) <= set(whole):
        raise ValueError(
            f"split_group(): expected distinct ranks below {parent.size()}; got {split_ranks}"
        )
    parent_backend, store = _world.pg_map[parent]
    kept = BackendConfig(backend or parent_backend).device_backend_map
    if not kept.items() <= _world.pg_backend_config[parent].device_backend_map.items():
        raise ValueError(f"split_group(): expected backends of {parent_backend}; got {backend}")
    parent.splits += 1
    mine = next((ranks for ranks in split_ranks if parent.rank() in ranks), None)
    if mine is None:
        return GroupMember.NON_GROUP_MEMBER
    return _make_group(
        [whole[rank] for rank in mine],
        _get_default_group().rank(),
        f"{parent.group_name}:split:{parent.splits}:{mine}".replace(" ", ""),
        Backend(backend or parent_backend),
        store,
        timeout,
        pg_options,
        group_desc or f"{parent.group_desc}:split:{parent.splits - 1}",
        parent.bound_device_id,
    )


def _find_pg_by_ranks_and_tag(tag, ranks):
    for pg in _world.tags_to_pg.get(tag, []):
        if list(_world.pg_group_ranks[pg]) == sorted(ranks):
            return pg
    return None


def _resolve_process_group(group_name):
    """The group of a name.

    Args:
        group_name (str): `ProcessGroup.group_name`.
    """
    for pg, name in _world.pg_names.items():
        if name == group_name:
            return pg
    raise RuntimeError(f"expected the name of a process group; got {group_name!r}")


def _get_process_group_name(pg):
    return _world.pg_names.get(pg, "None")


def _warn_not_in_group(op_name):
    rank = get_rank()
    warnings.warn(
        f"{op_name}(): rank {rank} is not in this group, and the call does nothing", stacklevel=3
    )
