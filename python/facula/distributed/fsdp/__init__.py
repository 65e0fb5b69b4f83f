"""Modules whose parameters are spread over processes: this build has no process group.

The classes are here to be asked for (`isinstance`), and the settings to be written down.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import facula
from facula.distributed.distributed_c10d import _unavailable
from facula.nn import Module

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "CPUOffloadPolicy",
    "FSDPModule",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "FullyShardedDataParallel",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "OptimStateDictConfig",
    "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
    "fully_shard",
    "register_fsdp_forward_method",
]


class FullyShardedDataParallel(Module):
    """A module whose parameters are spread over processes: RuntimeError in this build."""

    def __init__(self, *args, **kwargs):
        raise _unavailable("FullyShardedDataParallel()")


class FSDPModule:
    """What `fully_shard` makes of a module."""

    def __new__(cls, *args, **kwargs):
        raise _unavailable("FSDPModule()")


def fully_shard(module, **options):
    """Spread a module's parameters over the processes of a mesh: RuntimeError in this build."""
    raise _unavailable("fully_shard()")


def register_fsdp_forward_method(module, method_name):
    """Let a method of a sharded module gather parameters; other modules stay as they are."""


class ShardingStrategy(Enum):
    """What is spread."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When the next parameters are gathered in backward."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    """What `state_dict` gives."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class OptimStateKeyType(Enum):
    """What the keys of an optimizer's state are."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


@dataclass
class MixedPrecision:
    """The dtypes of computation, reduction and buffers."""

    param_dtype: facula.dtype | None = None
    reduce_dtype: facula.dtype | None = None
    buffer_dtype: facula.dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: tuple = ()


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of computation, reduction and outputs."""

    param_dtype: facula.dtype | None = None
    reduce_dtype: facula.dtype | None = None
    output_dtype: facula.dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class CPUOffload:
    """Whether parameters rest in the CPU's memory."""

    offload_params: bool = False


@dataclass
class OffloadPolicy:
    """Parameters stay where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters rest in the CPU's memory."""

    pin_memory: bool = True


@dataclass
class StateDictConfig:
    """How `state_dict` is made."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """How a `state_dict` of whole tensors is made."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """How a `state_dict` of local parts is made."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """How a `state_dict` of spread tensors is made."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """How an optimizer's `state_dict` is made."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """How an optimizer's `state_dict` of whole tensors is made."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """How an optimizer's `state_dict` of local parts is made."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """How an optimizer's `state_dict` of spread tensors is made."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What `state_dict` gives, and how it is made."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
