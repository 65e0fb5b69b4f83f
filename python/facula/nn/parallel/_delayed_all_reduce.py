"""Gradients of DistributedDataParallel that ranks average together, when one of them is there."""

from __future__ import annotations

import facula


class DelayedAllReduce:
    """Averages the gradients of some parameters in one call, late in a backward pass.

    The gradients are views of one tensor, in which several passes add up before the call.

    Args:
        params (list of Parameter): whose gradients wait.
        trigger (Parameter): once it has its gradient, the others are averaged.
        process_group (ProcessGroup): the ranks.
        is_due (callable): whether a pass averages gradients at all.
    """

    def __init__(self, params, trigger, process_group, is_due):
        kinds = {(p.dtype, p.device) for p in params}
        if len(kinds) != 1:
            raise ValueError(
                "DistributedDataParallel: expected delay_all_reduce_named_params of one dtype and "
                f"device; got {sorted(map(str, kinds))}"
            )
        ((dtype, device),) = kinds
        self.params, self.process_group, self.is_due = params, process_group, is_due
        sizes = [p.numel() for p in params]
        self.buffer = facula.zeros(sum(sizes), dtype=dtype, device=device)
        parts = self.buffer.split(sizes)
        self.views = [part.view(p.shape) for part, p in zip(parts, params, strict=True)]
        self.work = None
        trigger.register_post_accumulate_grad_hook(self._start)

    def prepare(self):
        """Before a forward pass: have the gradients be the views, zero where there were none."""
        with facula.no_grad():
            for param, view in zip(self.params, self.views, strict=True):
                if param.grad is None:
                    view.zero_()
                elif param.grad.data_ptr() != view.data_ptr():
                    view.copy_(param.grad)
                param.grad = view

    def _start(self, trigger):
        if not self.is_due():
            return
        from facula.distributed._reduce_op import AllreduceOptions

        # A gradient that autograd has put beside its view is taken into it.
        with facula.no_grad():
            for param, view in zip(self.params, self.views, strict=True):
                if param.grad is not None and param.grad.data_ptr() != view.data_ptr():
                    view.copy_(param.grad)
                param.grad = view
            self.buffer.div_(self.process_group.size())
        options = AllreduceOptions()
        options.asyncOp = True
        self.work = self.process_group.allreduce([self.buffer], options)
        facula.autograd.Variable._execution_engine.queue_callback(self._wait)

    def _wait(self):
        work, self.work = self.work, None
        if work is not None:
            work.wait()
