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

import facula
from facula.distributed import _mpi
from facula.distributed._errors import DistBackendError
from facula.distributed._exchange import exchange
from facula.distributed._process_group import (
    ProcessGroup,
    ProcessGroupGloo,
    ProcessGroupMPI,
    new_core,
)

default_pg_timeout = timedelta(minutes=30)

_NO_GROUP = (
    "Default process group has not been initialized, please make sure to call init_process_group."
)
# Seconds without a sign of life after which a rank counts as lost, and seconds of waiting after
# which the ranks that lag are named on stderr.
_HEARTBEAT, _LAG = "FACULA_DISTRIBUTED_HEARTBEAT", "FACULA_DISTRIBUTED_LAG"
# The engine to use whatever the machines are: "local" or "gloo".
_ENGINE = "FACULA_DISTRIBUTED_ENGINE"


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
_of_thread = threading.local()


class _World:
    """The groups; each thread that is a rank has its own."""

    @property
    def _groups(self):
        return getattr(_of_thread, "groups", _of_process)

    def __getattr__(self, name):
        return getattr(self._groups, name)

    def __setattr__(self, name, value):
        setattr(self._groups, name, value)


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


# --- backends


class Backend(str):
    """The name of a backend, in small letters.

    Example:
        >>> facula.distributed.Backend("GLOO")
        'gloo'
    """

    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE = (
        "undefined",
        "gloo",
        "nccl",
        "xccl",
        "ucc",
        "mpi",
        "fake",
    )
    THREADS = "threads"
    backend_list = ["undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake", "threads"]
    default_device_backend_map = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl"}
    backend_capability = {"gloo": ["cpu", "cuda"], "mpi": ["cpu", "cuda"], "threads": ["cpu"]}
    _plugins = {}

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError(f"Backend(): expected a name; got {type(name).__name__}")
        return super().__new__(cls, name.lower())

    @classmethod
    def register_backend(cls, name, func, extended_api=False, devices=None):
        """Add a backend of one's own.

        Args:
            name (str): its name.
            func (callable): makes a ProcessGroup of (store, rank, size, timeout), or with
                `extended_api` of an object with these and options.
            extended_api (bool): see `func`.
            devices (str or list): device types that it serves.
        """
        name = name.lower()
        if name in cls._plugins:
            raise AssertionError(f"register_backend(): expected a new name; got {name!r} again")
        setattr(cls, name.upper(), name)
        if name not in cls.backend_list:
            cls.backend_list = [*cls.backend_list, name]
        devices = [devices] if isinstance(devices, str) else list(devices or ["cpu", "cuda"])
        cls.backend_capability = {**cls.backend_capability, name: devices}
        cls._plugins[name] = (func, extended_api)


class BackendConfig:
    """The backends of device types: "gloo", or "cpu:gloo,cuda:nccl".

    Args:
        backend (str): the names.

    Example:
        >>> facula.distributed.BackendConfig("cpu:gloo").get_device_backend_map()
        {'cpu': 'gloo'}
    """

    def __init__(self, backend):
        text = str(backend)
        self.device_backend_map = {}
        if ":" in text:
            for pair in text.lower().split(","):
                device, _, name = pair.partition(":")
                if not device or not name or device in self.device_backend_map:
                    raise ValueError(
                        f"BackendConfig(): expected device:backend pairs, each device once; "
                        f"got {text!r}"
                    )
                self.device_backend_map[device] = Backend(name)
        elif text == Backend.UNDEFINED:
            self.device_backend_map = dict(Backend.default_device_backend_map)
        else:
            devices = Backend.backend_capability.get(text.lower(), ["cpu", "cuda"])
            self.device_backend_map = {d: Backend(text) for d in devices}

    def __repr__(self):
        return ",".join(f"{d}:{b}" for d, b in self.device_backend_map.items())

    def get_device_backend_map(self):
        """Device type -> backend."""
        return self.device_backend_map


def is_backend_available(backend):
    """Whether a backend can be used here.

    Args:
        backend (str): its name.

    Returns:
        bool

    Example:
        >>> facula.distributed.is_backend_available("gloo")
        True
    """
    name = backend.lower()
    if name == "mpi":
        return _mpi.is_available()
    return name in ("gloo", "threads", "fake") or name in Backend._plugins


# --- the default group


def _get_default_group():
    if _world.default_pg is None:
        raise ValueError(_NO_GROUP)
    return _world.default_pg


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
        backend (str): "gloo" (the default), "mpi" under mpirun, which then knows `rank` and
            `world_size`, "threads" for ranks that are threads of one process, or one that was
            registered.
        init_method (str): where ranks find each other; default `env://`.
        timeout (timedelta): how long a call waits for other ranks; default 30 minutes.
        world_size (int): the number of ranks; with `env://` WORLD_SIZE.
        rank (int): the number of this one; with `env://` RANK.
        store (Store): in place of `init_method`.
        group_name (str): has no effect.
        pg_options (object): options for the backend.
        device_id (device): has no effect on the CPU.

    Raises:
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
    backend = Backend(backend or "gloo")
    timeout = timeout or default_pg_timeout
    if backend == Backend.MPI:
        rank, world_size = _mpi.world(rank, world_size)
    elif store is not None:
        if world_size < 1 or not 0 <= rank < world_size:
            raise ValueError(
                "init_process_group(): expected world_size and a rank below it beside a store; "
                f"got {world_size} and {rank}"
            )
    else:
        from facula.distributed.rendezvous import rendezvous

        store, rank, world_size = next(
            iter(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
        )
    ranks = list(range(world_size))
    pg = _make_group(ranks, rank, "0", backend, store, timeout, pg_options, "default_pg")
    _world.default_pg = pg
    _leave_at_exit()


def _seconds(variable, default):
    text = os.environ.get(variable)
    try:
        seconds = default if text is None else float(text)
    except ValueError:
        seconds = -1
    if seconds <= 0:
        raise ValueError(f"{variable}: expected seconds above 0; got {text!r}")
    return seconds


def _limits():
    return _seconds(_HEARTBEAT, 10), _seconds(_LAG, 2)


def _make_group(ranks, my_global_rank, name, backend, store, timeout, options, desc):
    """A connected group, noted in _world; NON_GROUP_MEMBER for a rank that is not in it."""
    _world.group_count += 1
    if my_global_rank not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    rank, size = ranks.index(my_global_rank), len(ranks)
    config = BackendConfig(backend)
    of_cpu = config.device_backend_map.get("cpu", backend)
    if of_cpu in Backend._plugins:
        pg = _plugin_group(of_cpu, store, ranks, rank, size, name, timeout, options)
    elif of_cpu in ("gloo", "threads"):
        core = _connected_core(store, rank, size, name, timeout, ranks)
        pg = ProcessGroupGloo(rank, size, core, name, str(of_cpu), desc)
    elif of_cpu == Backend.MPI:
        core = new_core(_mpi.engine(), rank, size, name, timeout, *_limits())
        core.connect([str(r).encode() for r in ranks])  # MPI knows processes by global ranks
        core.start()
        pg = ProcessGroupMPI(rank, size, core, name, str(of_cpu), desc)
    elif of_cpu == "fake":
        from facula.distributed._fake import FakeProcessGroup

        pg = FakeProcessGroup(rank, size, name, desc)
    else:
        raise RuntimeError(
            f"init_process_group(): expected the backend gloo, mpi, threads or fake, which are in "
            f"this build; got {str(of_cpu)!r}"
        )
    _world.pg_map[pg] = (backend, store)
    _world.pg_names[pg] = name
    _world.pg_group_ranks[pg] = {r: i for i, r in enumerate(ranks)}
    _world.pg_backend_config[pg] = config
    _world.tags_to_pg.setdefault("", []).append(pg)
    _world.pg_to_tag[pg] = ""
    return pg


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


def _connected_core(store, rank, size, name, timeout, ranks):
    """A group of the core: in shared memory if all ranks can, else over Gloo."""
    limits = _limits()
    # A name comes again when groups are made anew, with the keys of before still in the store.
    turn = _world.made[name] = _world.made.get(name, 0) + 1
    wanted = os.environ.get(_ENGINE)
    for engine in [wanted] if wanted else ["local", "gloo"]:
        try:
            core = new_core(engine, rank, size, name, timeout, *limits)
        except RuntimeError as error:
            raise RuntimeError(f"ranks on several machines need the library of Gloo: {error}")
        key = f"facula/{name}/{turn}/{engine}"
        addresses = exchange(store, f"{key}/address", rank, ranks, core.address(), timeout)
        try:
            connected = core.connect(addresses)
        except RuntimeError:
            exchange(store, f"{key}/connected", rank, ranks, b"0", timeout)
            raise
        answers = exchange(
            store, f"{key}/connected", rank, ranks, b"1" if connected else b"0", timeout
        )
        if all(a == b"1" for a in answers):
            core.start()
            return core
        core.leave("", False)
    raise DistBackendError(f"group {name!r}: its ranks cannot reach each other")


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
    """What moves the data of a group: the group itself, whose one backend serves the CPU."""
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
        timeout (timedelta): default that of the default group.
        backend (str): default that of the default group.
        pg_options (object): options for the backend.
        use_local_synchronization (bool): only the members call it.
        group_desc (str): what the group is for.
        device_id (device): has no effect on the CPU.
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
    return _make_group(
        ranks,
        default.rank(),
        name,
        Backend(backend or default_backend),
        store,
        timeout or default_pg_timeout,
        pg_options,
        group_desc or "undefined",
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
    """Split a group on an accelerator: RuntimeError, as this build has no backend that can."""
    _get_default_group()
    raise RuntimeError("split_group(): expected a backend that splits groups; got gloo")


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
