"""Stages that are data parallel: gradients of all microbatches are averaged together."""

from __future__ import annotations

import contextlib

import facula
from facula.distributed.tensor import DTensor
from facula.nn.parallel import DistributedDataParallel


class DataParallelParts:
    """The parts of a stage's module that `fully_shard`, `replicate` or DDP made data parallel.

    Args:
        module (Module): of the stage.
    """

    def __init__(self, module):
        self.module = module
        parts = list(module.modules())
        self.sharded = [m for m in parts if "_fsdp_state" in vars(m)]
        self.copied = [m for m in parts if isinstance(m, DistributedDataParallel)]
        self.replicated = [m for m in parts if _replicate_state(m) is not None]
        self._saved = None

    # --- parameters

    def unshard(self, async_op=False):
        """Gather the parameters of all sharded parts.

        Args:
            async_op (bool): have them gathered while the program goes on.
        """
        for part in self.sharded:
            part.unshard(async_op=async_op)

    def reshard(self):
        """Have all sharded parts show their shards."""
        for part in self.sharded:
            part.reshard()

    # --- gradients

    def hold_gradients(self):
        """From now on backward passes leave gradients on their rank."""
        groups = [g for part in self.sharded for g in part._groups(False)]
        self._saved = [
            (g, g.reduce_grads, g.all_reduce_grads, g.reshard_after_backward) for g in groups
        ]
        for part in self.sharded:
            part.set_requires_gradient_sync(False, recurse=False)
            part.set_reshard_after_backward(False, recurse=False)
            part.set_is_last_backward(False)
        for part in self.replicated:
            part.set_requires_gradient_sync(False)  # makes the reducer, before the first forward
        for ddp in self._ddps():
            ddp.require_backward_grad_sync = False

    def release_gradients(self):
        """Backward passes average gradients again."""
        for group, reduces, all_reduces, reshards in self._saved or ():
            group.reduce_grads, group.all_reduce_grads = reduces, all_reduces
            group.reshard_after_backward = reshards
        self._saved = None
        for part in self.sharded:
            part.set_is_last_backward(True)
        for ddp in self._ddps():
            ddp.require_backward_grad_sync = ddp.require_forward_param_sync = True

    def start_reduction(self):
        """Begin to average the gradients that were held."""
        self.release_gradients()
        for part in self.sharded:
            for group in part._groups(False):
                group.post_backward()
                group.reshard()
        for ddp in self._ddps():
            ddp.reducer.start_accumulated()

    def finish_reduction(self):
        """Wait for the averages."""
        for part in self.sharded:
            if part._fsdp_state.is_root:
                part._fsdp_state.finalize()
        for ddp in self._ddps():
            ddp.reducer.finish()

    def _ddps(self):
        return [*self.copied, *(_replicate_state(m)._ddp for m in self.replicated)]

    # --- shapes

    def is_tensor_parallel(self):
        """Whether there are DTensors beside those that `fully_shard` made."""
        params = [p for m in self.sharded for g in m._groups(False) for p in g.params]
        known = {id(p.sharded_param) for p in params}
        return any(p._inner_spec is not None for p in params) or any(
            isinstance(p, DTensor) and id(p) not in known for p in self.module.parameters()
        )

    def run_without_effect(self, args, kwargs):
        """What the module returns; buffers and random generators are left as they were.

        Args:
            args (tuple of Tensor): of any values.
            kwargs (dict): arguments by name.
        """
        buffers = list(self.module.buffers())
        with facula.no_grad():
            before = [b.clone() for b in buffers]
        with facula.random.fork_rng():
            output = self.module(*args, **kwargs)
        with facula.no_grad():
            for buffer, value in zip(buffers, before, strict=True):
                buffer.copy_(value)
        return output

    @contextlib.contextmanager
    def finding_shapes(self):
        """A scope in which forward computes with the parameters that it is given.

        Yields:
            tuple: the module to run, and its parameters and buffers by name, of the shapes and
            dtypes that it computes with
        """
        states = [m._fsdp_state for m in self.sharded]
        states += [_replicate_state(m) for m in self.replicated]
        for state in states:
            state.finds_shapes = True
        try:
            yield self._inner(), self._whole_tensors()
        finally:
            for state in states:
                state.finds_shapes = False

    def _inner(self):
        is_copied = isinstance(self.module, DistributedDataParallel)
        return self.module.module if is_copied else self.module

    def _whole_tensors(self):
        params = [p for m in self.sharded for g in m._groups(False) for p in g.params]
        by_id = {id(p.sharded_param): p for p in params}
        found = {}
        inner = self._inner()
        for name, value in [*inner.named_parameters(), *inner.named_buffers()]:
            param = by_id.get(id(value))
            found[name] = value if param is None else _whole(param)
        return found


def _whole(param):
    """A tensor like the whole of a sharded parameter, without memory."""
    made = facula.empty(param.local_shape, dtype=param.param_dtype, device="meta")
    return made.requires_grad_(param.sharded_param.requires_grad)


def _replicate_state(module):
    from facula.distributed._composable import replicate

    return replicate.state(module)
