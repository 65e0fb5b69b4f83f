"""Settings of FullyShardedDataParallel, and of what its `state_dict` gives."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import facula
from facula.nn.modules.batchnorm import _BatchNorm

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]


class ShardingStrategy(Enum):
    """What is cut over the ranks.

    FULL_SHARD cuts parameters, gradients and optimizer state; SHARD_GRAD_OP keeps parameters whole
    between forward and backward; NO_SHARD cuts nothing. The HYBRID ones do so over the ranks of a
    group, and keep copies over the groups.
    """

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When backward gathers the next parameters: before or after the gradients of these."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    """What `state_dict` gives: whole tensors, this rank's parts, or spread tensors."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class MixedPrecision:
    """The dtypes of computation, of the reduction of gradients, and of buffers.

    Args:
        param_dtype (dtype): parameters and inputs are cast to it.
        reduce_dtype (dtype): gradients are cast to it before they are reduced.
        buffer_dtype (dtype): floating-point buffers are cast to it.
        keep_low_precision_grads (bool): leave gradients in `reduce_dtype`; refused.
        cast_forward_inputs (bool): cast inputs of each wrapped module.
        cast_root_forward_inputs (bool): cast inputs of the root.
    """

    param_dtype: facula.dtype | None = None
    reduce_dtype: facula.dtype | None = None
    buffer_dtype: facula.dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: tuple = (_BatchNorm,)


@dataclass
class CPUOffload:
    """Whether parameters rest in the CPU's memory."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """How `state_dict` is made.

    Args:
        offload_to_cpu (bool): move tensors to the CPU.
    """

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """How a `state_dict` of whole tensors is made.

    Args:
        rank0_only (bool): rank 0 alone gets them; the others get an empty dict.
    """

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """How a `state_dict` of this rank's parts is made."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """How a `state_dict` of spread tensors is made: they are always DTensors."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """How an optimizer's state is made.

    Args:
        offload_to_cpu (bool): move tensors to the CPU.
    """

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """How an optimizer's state of whole tensors is made.

    Args:
        rank0_only (bool): rank 0 alone gets it; the others get an empty dict.
    """

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """How an optimizer's state of this rank's parts is made."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """How an optimizer's state of spread tensors is made: they are always DTensors."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What `state_dict` gives, and how it and the optimizer's state are made."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
