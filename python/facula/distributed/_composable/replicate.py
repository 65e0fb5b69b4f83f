"""replicate: a module whose gradients are averaged over ranks, without a wrapper."""

from __future__ import annotations

import facula
from facula.distributed._composable.contract import contract
from facula.distributed._composable_state import _State
from facula.distributed.tensor.parallel.ddp import _pre_dp_module_transform
from facula.nn.parallel import DistributedDataParallel
from facula.nn.parallel._mixed_precision import cast_inputs
from facula.utils._pytree import tree_leaves


class _ReplicateState(_State):
    """The reducer of a module, made when its forward runs first."""

    def __init__(self):
        self._ddp, self._options, self._cast = None, {}, None
        self.finds_shapes = False  # forward runs on tensors without memory, parameters included

    def before_forward(self, module, args, kwargs):
        if self.finds_shapes:
            return args, kwargs
        if self._ddp is None:
            self._ddp = DistributedDataParallel(module, **self._options)
        self._ddp._pre_forward()
        if self._ddp.mixed_precision is None:
            return args, kwargs
        self._cast = self._ddp._cast_parameters()
        self._cast.__enter__()
        return cast_inputs(self._ddp.mixed_precision.param_dtype, (args, kwargs))

    def after_forward(self, module, args, output):
        if self.finds_shapes:
            return
        if self._cast is not None:
            self._cast.__exit__(None, None, None)
            self._cast = None
        if output is None:  # an exception
            return
        ddp = self._ddp
        syncs = facula.is_grad_enabled() and ddp.require_backward_grad_sync
        ddp.require_forward_param_sync = syncs
        if syncs:
            tensors = [t for t in tree_leaves(output) if isinstance(t, facula.Tensor)]
            ddp.reducer.prepare_for_backward(tensors)


class DDP:
    """What `replicate` makes of a module."""

    def set_requires_gradient_sync(self, requires_gradient_sync):
        """Whether backward averages gradients: False to accumulate over several passes."""
        state = replicate.state(self)
        if state._ddp is None:
            state._ddp = DistributedDataParallel(self, **state._options)
        state._ddp.require_backward_grad_sync = requires_gradient_sync

    def register_comm_hook(self, *args, **kwargs):
        """`DistributedDataParallel.register_comm_hook`."""
        state = replicate.state(self)
        if state._ddp is None:
            state._ddp = DistributedDataParallel(self, **state._options)
        state._ddp.register_comm_hook(*args, **kwargs)


@contract(state_cls=_ReplicateState)
def replicate(module, ignored_modules=None, **kwargs):
    """Have the gradients of a module averaged over ranks, as DistributedDataParallel does.

    Args:
        module (Module): changed in place.
        ignored_modules (iterable of Module): left alone.
        kwargs: those of DistributedDataParallel.

    Returns:
        Module: the same

    Raises:
        RuntimeError: the module is one of `fully_shard`.

    Example:
        >>> def work(rank):
        ...     model = replicate(facula.nn.Linear(1, 1))
        ...     model(facula.full((1, 1), float(rank))).sum().backward()
        ...     return model.weight.grad.item()
        >>> facula.distributed.threads.run(work, 2)
        [0.5, 0.5]
    """
    if "_fsdp_state" in vars(module):
        raise RuntimeError("replicate(): expected a module that is not sharded; got one that is")
    ignored = {n for m in ignored_modules or () for n in m.modules()}
    names = [
        f"{prefix}.{name}" if prefix else name
        for prefix, part in module.named_modules()
        if part in ignored
        for name in (*part._parameters, *part._buffers)
    ]
    module._ddp_params_and_buffers_to_ignore = names
    state = replicate.state(module)
    state._options = kwargs
    if kwargs.get("device_mesh") is not None:
        _pre_dp_module_transform(module)
    # Gradients are averaged of what optimizers see: parts, not what hooks make of them.
    module.register_forward_pre_hook(state.before_forward, prepend=True, with_kwargs=True)
    module.register_forward_hook(state.after_forward, always_call=True)
    cls = type(module)
    module.__class__ = type(f"DDP{cls.__name__}", (DDP, cls), {})
    return module


__all__ = ["replicate"]
