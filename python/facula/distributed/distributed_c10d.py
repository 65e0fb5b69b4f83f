"""Groups of processes: what PyTorch has under this name, gathered from the modules beside it."""

from __future__ import annotations

import enum
import os

from facula._C import _distributed
from facula.distributed._collectives import *  # noqa: F403
from facula.distributed._collectives import (  # noqa: F401
    _all_gather_base,
    _coalescing_manager,
    _CoalescingManager,
    _reduce_scatter_base,
)
from facula.distributed._errors import *  # noqa: F403
from facula.distributed._objects import *  # noqa: F403
from facula.distributed._objects import _object_to_tensor, _tensor_to_object  # noqa: F401
from facula.distributed._process_group import *  # noqa: F403
from facula.distributed._process_group_nccl import *  # noqa: F403
from facula.distributed._reduce_op import *  # noqa: F403
from facula.distributed._reduce_op import _make_nccl_premul_sum  # noqa: F401
from facula.distributed._reducer import *  # noqa: F403
from facula.distributed._store import *  # noqa: F403
from facula.distributed._world import (  # noqa: F401
    Backend,
    BackendConfig,
    GroupMember,
    _abort_process_group,
    _find_pg_by_ranks_and_tag,
    _get_default_group,
    _get_process_group_name,
    _rank_not_in_group,
    _resolve_process_group,
    _world,
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_backend_impl,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_backend_available,
    is_initialized,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    set_timeout,
    split_group,
)
from facula.distributed.device_mesh import DeviceMesh, init_device_mesh  # noqa: F401

GroupName = str
RankType = int


def _unavailable(what):
    return RuntimeError(f"{what}: this build of facula has no distributed package")


# --- questions


def is_available():
    """Whether processes can work together: True.

    Example:
        >>> facula.distributed.is_available(), facula.distributed.is_initialized()
        (True, False)
    """
    return True


def is_gloo_available():
    """Whether the backend "gloo" can be used: True.

    Ranks on one machine need nothing for it; on several they need the library of Gloo.
    """
    return True


def is_nccl_available():
    """Whether NCCL's library is there, say, of the package `nvidia-nccl-cu12` or `-cu13`."""
    return is_backend_available("nccl")


def is_ucc_available():
    """Whether the backend "ucc" can be used: False in this build."""
    return False


is_xccl_available = is_ucc_available


def is_mpi_available():
    """Whether the backend "mpi" can be used: where this build found OpenMPI or MPICH."""
    return is_backend_available("mpi")


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


# --- classes


class DebugLevel(enum.Enum):
    """How much is checked."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_debug_level = None


def get_debug_level():
    """How much is checked: at DETAIL, ranks compare shapes and not only numbers of elements.

    Returns:
        DebugLevel: that of TORCH_DISTRIBUTED_DEBUG unless it was set; OFF without either
    """
    if _debug_level is None:
        set_debug_level_from_env()
    return _debug_level


def set_debug_level(level):
    """Set how much is checked.

    Args:
        level (DebugLevel): the level.
    """
    global _debug_level
    _debug_level = DebugLevel(level)
    _distributed.set_detailed(_debug_level is DebugLevel.DETAIL)


def set_debug_level_from_env():
    """Set how much is checked from TORCH_DISTRIBUTED_DEBUG: OFF, INFO or DETAIL."""
    text = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF")
    if text.upper() not in DebugLevel.__members__:
        raise ValueError(f"TORCH_DISTRIBUTED_DEBUG: expected OFF, INFO or DETAIL; got {text!r}")
    set_debug_level(DebugLevel[text.upper()])


class BuiltinCommHookType(enum.Enum):
    """Ways of adding gradients up."""

    ALLREDUCE = 0
    FP16_COMPRESS = 1


__all__ = sorted(
    name
    for name in [*globals()]
    if not name.startswith("_") and name not in ("annotations", "enum", "os")
)
