"""Ways to change a module in place, of which several may be applied to one."""

from facula.distributed._composable.checkpoint_activation import checkpoint
from facula.distributed._composable.contract import _get_registry, contract
from facula.distributed._composable.fsdp import fully_shard
from facula.distributed._composable.replicate import replicate

__all__ = ["_get_registry", "checkpoint", "contract", "fully_shard", "replicate"]
