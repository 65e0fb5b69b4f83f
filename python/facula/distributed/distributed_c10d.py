"""Groups of processes: the classes and functions, where no group can be made."""

from __future__ import annotations

import enum
import inspect
import os
from datetime import timedelta

default_pg_timeout = timedelta(minutes=30)

_NO_GROUP = (
    "Default process group has not been initialized, please make sure to call init_process_group."
)


def _unavailable(what):
    return RuntimeError(f"{what}: this build of facula has no distributed package")


# --- questions


def is_available():
    """Whether processes can work together: False in this build.

    Example:
        >>> facula.distributed.is_available(), facula.distributed.is_initialized()
        (False, False)
    """
    return False


def is_initialized():
    """Whether there is a default process group: False in this build."""
    return False


is_nccl_available = is_gloo_available = is_mpi_available = is_available
is_ucc_available = is_xccl_available = is_available


def is_backend_available(backend):
    """Whether a backend (str) is there: False in this build."""
    return False


def is_torchelastic_launched():
    """Whether this process was started by an elastic launcher."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_node_local_rank(fallback_rank=None):
    """The number of this process on its machine: LOCAL_RANK of the environment.

    Raises:
        RuntimeError: it is not set, and there is no `fallback_rank`.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device context "
        "and want the code to run locally instead."
    )


def supports_complex(reduceOp):
    """Whether a reduction is defined for complex numbers."""
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT)


# --- classes


class DistError(RuntimeError):
    """An error between processes."""


class DistBackendError(DistError):
    """An error of a backend."""


class DistNetworkError(DistError):
    """An error of the network."""


class DistStoreError(DistError):
    """An error of a store."""


class QueueEmptyError(DistStoreError):
    """A queue of a store that is empty."""


class DebugLevel(enum.Enum):
    """How much is checked."""

    OFF = 0
    INFO = 1
    DETAIL = 2


def get_debug_level():
    """How much is checked: DebugLevel.OFF."""
    return DebugLevel.OFF


class BuiltinCommHookType(enum.Enum):
    """Ways of adding gradients up."""

    ALLREDUCE = 0
    FP16_COMPRESS = 1


class ReduceOp:
    """How numbers of processes become one: `ReduceOp.SUM` and its like."""

    class RedOpType(enum.Enum):
        """The reductions."""

        SUM = 0
        AVG = 1
        PRODUCT = 2
        MIN = 3
        MAX = 4
        BAND = 5
        BOR = 6
        BXOR = 7
        PREMUL_SUM = 8

        def __repr__(self):
            return f"<RedOpType.{self.name}: {self.value}>"

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = RedOpType

    def __init__(self, op=RedOpType.SUM):
        self.op = op

    def __eq__(self, other):
        return self.op == (other.op if isinstance(other, ReduceOp) else other)

    def __hash__(self):
        return hash(self.op)


class reduce_op:
    """The reductions by their names of old."""

    SUM, PRODUCT, MAX, MIN = ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MAX, ReduceOp.MIN


class Backend(str):
    """The name of a backend, in small letters."""

    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE = (
        "undefined",
        "gloo",
        "nccl",
        "xccl",
        "ucc",
        "mpi",
        "fake",
    )
    backend_list = ["undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake"]

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish: {name}")
        return super().__new__(cls, name.lower())

    @classmethod
    def register_backend(cls, name, func, extended_api=False, devices=None):
        """Add a backend: RuntimeError in this build."""
        raise _unavailable("Backend.register_backend()")


class BackendConfig:
    """The backends of device types; made with a process group."""

    def __init__(self, backend):
        raise _unavailable("BackendConfig()")


class _Absent:
    """A class whose objects are made with a process group, of which there is none."""

    def __init__(self, *args, **kwargs):
        raise _unavailable(f"{type(self).__name__}()")


class ProcessGroup(_Absent):
    """Processes that work together."""


class Work(_Absent):
    """A communication that is under way."""


class Store(_Absent):
    """Keys and values that processes share."""


class TCPStore(Store):
    """A store that is a server."""


class FileStore(Store):
    """A store that is a file."""


class HashStore(Store):
    """A store within a process."""


class PrefixStore(Store):
    """A store within a store."""


class GradBucket(_Absent):
    """Gradients that travel together."""


class Reducer(_Absent):
    """What adds gradients up during backward."""


class Logger(_Absent):
    """Notes of what a Reducer did."""


class ProcessGroupGloo(ProcessGroup):
    """Processes that work together through Gloo."""


class ProcessGroupNCCL(ProcessGroup):
    """Processes that work together through NCCL."""


class DeviceMesh(_Absent):
    """Devices of all processes, in a grid."""


class P2POp(_Absent):
    """A message to be sent or received."""


class _GroupMember:
    WORLD = None
    NON_GROUP_MEMBER = -100


class GroupMember(_GroupMember):
    """What stands for all processes, and for none."""


class group(_GroupMember):
    """What stands for all processes."""


# --- functions that need a group


def _get_default_group():
    raise ValueError(_NO_GROUP)


def _rank_not_in_group(group):
    return group == GroupMember.NON_GROUP_MEMBER


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
):
    """Make the default process group: RuntimeError in this build."""
    raise _unavailable("init_process_group()")


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, backend_override=None):
    """Make a DeviceMesh: RuntimeError in this build."""
    raise _unavailable("init_device_mesh()")


def destroy_process_group(group=None):
    """Take a process group down: there is none to take down, which is an AssertionError."""
    raise AssertionError("Process group cannot be None")


# Name -> parameters. None of them can be called with success before there is a group.
_NEED_A_GROUP = {
    "all_gather": "tensor_list, tensor, group=None, async_op=False",
    "all_gather_coalesced": "output_tensor_lists, input_tensor_list, group=None, async_op=False",
    "all_gather_into_tensor": "output_tensor, input_tensor, group=None, async_op=False",
    "all_gather_object": "object_list, obj, group=None",
    "all_reduce": "tensor, op=None, group=None, async_op=False",
    "all_reduce_coalesced": "tensors, op=None, group=None, async_op=False",
    "all_to_all": "output_tensor_list, input_tensor_list, group=None, async_op=False",
    "all_to_all_single": "output, input, output_split_sizes=None, input_split_sizes=None, "
    "group=None, async_op=False",
    "barrier": "group=None, async_op=False, device_ids=None",
    "batch_isend_irecv": "p2p_op_list",
    "broadcast": "tensor, src=None, group=None, async_op=False, group_src=None",
    "broadcast_object_list": "object_list, src=None, group=None, device=None, group_src=None",
    "gather": "tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None",
    "gather_object": "obj, object_gather_list=None, dst=None, group=None, group_dst=None",
    "get_backend": "group=None",
    "get_backend_config": "group=None",
    "get_global_rank": "group, group_rank",
    "get_group_rank": "group, global_rank",
    "get_pg_count": "",
    "get_process_group_ranks": "group",
    "get_rank": "group=None",
    "get_world_size": "group=None",
    "irecv": "tensor, src=None, group=None, tag=0, group_src=None",
    "isend": "tensor, dst=None, group=None, tag=0, group_dst=None",
    "monitored_barrier": "group=None, timeout=None, wait_all_ranks=False",
    "new_group": "ranks=None, timeout=None, backend=None, pg_options=None, "
    "use_local_synchronization=False, group_desc=None, device_id=None",
    "new_subgroups": "group_size=None, group=None, timeout=None, backend=None, pg_options=None, "
    "group_desc=None",
    "recv": "tensor, src=None, group=None, tag=0, group_src=None",
    "recv_object_list": "object_list, src=None, group=None, device=None, group_src=None",
    "reduce": "tensor, dst=None, op=None, group=None, async_op=False, group_dst=None",
    "reduce_scatter": "output, input_list, op=None, group=None, async_op=False",
    "reduce_scatter_tensor": "output, input, op=None, group=None, async_op=False",
    "scatter": "tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None",
    "scatter_object_list": "scatter_object_output_list, scatter_object_input_list=None, src=None, "
    "group=None, group_src=None",
    "send": "tensor, dst=None, group=None, tag=0, group_dst=None",
    "send_object_list": "object_list, dst=None, group=None, device=None, group_dst=None",
    "split_group": "parent_pg=None, split_ranks=None, timeout=None, pg_options=None, "
    "group_desc=None",
}


def _needing_a_group(name, parameters):
    signature = inspect.signature(eval(f"lambda {parameters}: None"))

    def call(*args, **kwargs):
        signature.bind(*args, **kwargs)
        _get_default_group()

    call.__name__ = call.__qualname__ = name
    call.__signature__ = signature
    call.__doc__ = "Communicate with a process group: ValueError, as there is none in this build."
    return call


globals().update({name: _needing_a_group(name, text) for name, text in _NEED_A_GROUP.items()})

__all__ = sorted(
    name
    for name in [*globals()]
    if not name.startswith("_")
    and name not in ("annotations", "enum", "inspect", "os", "timedelta")
)
