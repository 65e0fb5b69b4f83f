"""A gradient scaler whose ranks agree on overflows."""

from __future__ import annotations

import facula
import facula.distributed as dist
from facula.amp import GradScaler
from facula.distributed.tensor._api import DTensor

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """A GradScaler for parameters in shards: a step is left out at all ranks or at none.

    Args:
        device (str): where the losses are.
        init_scale, backoff_factor, growth_factor, growth_interval, enabled: as for GradScaler.
        process_group (ProcessGroup): the ranks that have the shards; default all.

    Example:
        >>> def work(rank):
        ...     scaler = ShardedGradScaler("cpu", init_scale=2.0)
        ...     w = facula.nn.Parameter(facula.ones(1))
        ...     optimizer = facula.optim.SGD([w], lr=1.0)
        ...     scaler.scale(w * (float("inf") if rank else 1.0)).backward()
        ...     scaler.step(optimizer)
        ...     scaler.update()
        ...     return w.item(), scaler.get_scale()
        >>> facula.distributed.threads.run(work, 2)
        [(1.0, 1.0), (1.0, 1.0)]
    """

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        backoff_factor=0.5,
        growth_factor=2.0,
        growth_interval=2000,
        enabled=True,
        process_group=None,
    ):
        super().__init__(
            device,
            init_scale=init_scale,
            backoff_factor=backoff_factor,
            growth_factor=growth_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )
        if enabled:
            self.process_group = process_group or dist.group.WORLD

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16=True):
        found = {}
        with facula.no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if param.grad is None:
                        continue
                    grad = param.grad
                    local = grad._local_tensor if isinstance(grad, DTensor) else grad
                    here = found.setdefault(local.device, found_inf.to(local.device, copy=True))
                    if not facula.isfinite(local).all():
                        here.fill_(1.0)
                    local.mul_(inv_scale.to(local.device))
            # A rank may have no gradients; it must ask the others all the same.
            if not found:
                found[found_inf.device] = found_inf.clone()
            for here in found.values():
                dist.all_reduce(here, op=dist.ReduceOp.MAX, group=self.process_group)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found
