"""Functions that communicate gradients of FullyShardedDataParallel."""

from facula.distributed.algorithms._comm_hooks import default_hooks as default

LOW_PRECISION_HOOKS = [default.fp16_compress_hook, default.bf16_compress_hook]

__all__ = ["LOW_PRECISION_HOOKS", "default"]
