"""Functions that communicate the gradients of DistributedDataParallel."""

from __future__ import annotations

import enum
import functools

from facula.distributed.algorithms.ddp_comm_hooks import (
    debugging_hooks,
    default_hooks,
    quantization_hooks,
)
from facula.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


def _register(hook, model, state):
    model.register_comm_hook(state, hook)


def _register_power_sgd(hook, model, state, matrix_approximation_rank):
    power_state = power.PowerSGDState(state, matrix_approximation_rank)
    model.register_comm_hook(power_state, hook)


class DDPCommHookType(enum.Enum):
    """Hooks by name."""

    ALLREDUCE = functools.partial(_register, default_hooks.allreduce_hook)
    FP16_COMPRESS = functools.partial(_register, default_hooks.fp16_compress_hook)
    BF16_COMPRESS = functools.partial(_register, default_hooks.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = functools.partial(
        _register, quantization_hooks.quantization_pertensor_hook
    )
    QUANTIZE_PER_CHANNEL = functools.partial(
        _register, quantization_hooks.quantization_perchannel_hook
    )
    POWER_SGD = functools.partial(
        _register_power_sgd, power.powerSGD_hook, matrix_approximation_rank=1
    )
    POWER_SGD_RANK2 = functools.partial(
        _register_power_sgd, power.powerSGD_hook, matrix_approximation_rank=2
    )
    BATCHED_POWER_SGD = functools.partial(
        _register_power_sgd, power.batched_powerSGD_hook, matrix_approximation_rank=1
    )
    BATCHED_POWER_SGD_RANK2 = functools.partial(
        _register_power_sgd, power.batched_powerSGD_hook, matrix_approximation_rank=2
    )
    NOOP = functools.partial(_register, debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type, model, state=None):
    """Register a hook by its name.

    Args:
        comm_hook_type (DDPCommHookType): which one.
        model (DistributedDataParallel): the model.
        state (ProcessGroup): the ranks; None for all.
    """
    comm_hook_type.value(model=model, state=state)
