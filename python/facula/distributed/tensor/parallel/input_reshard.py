"""input_reshard: what a module saves for its backward pass is spread over ranks meanwhile."""

from __future__ import annotations

import facula
from facula.autograd.graph import saved_tensors_hooks
from facula.distributed.tensor._api import DTensor
from facula.distributed.tensor.placement_types import Replicate, Shard

__all__ = ["input_reshard"]


def input_reshard(module, tp_device_mesh, input_reshard_dim=None):
    """Keep the tensors that a module saves in parts, and gather them in the backward pass.

    Args:
        module (Module): its saved tensors are the same at all ranks.
        tp_device_mesh (DeviceMesh): of one dimension.
        input_reshard_dim (int): the dimension to cut; None to leave the module as it is.

    Returns:
        Module

    Example:
        >>> def work(rank):
        ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
        ...     module = input_reshard(facula.nn.Linear(2, 2), mesh, 0)
        ...     x = facula.ones(4, 2, requires_grad=True)
        ...     module(x).sum().backward()
        ...     return module.weight.grad
        >>> facula.distributed.threads.run(work, 2)[0]
        tensor([[4., 4.],
                [4., 4.]])
    """
    if input_reshard_dim is None:
        return module
    mesh, dim = tp_device_mesh, input_reshard_dim
    entered = []

    def pack(tensor):
        if isinstance(tensor, DTensor):
            if not all(p.is_replicate() for p in tensor.placements) or tensor.dim() <= dim:
                return tensor, None
            return tensor.detach().redistribute(placements=[Shard(dim)]), "distributed"
        if isinstance(tensor, facula.nn.Parameter) or tensor.dim() <= dim or tensor.numel() == 0:
            return tensor, None
        whole = DTensor.from_local(tensor.detach(), mesh, [Replicate()])
        return whole.redistribute(placements=[Shard(dim)]), "plain"

    def unpack(packed):
        tensor, kind = packed
        if kind is None:
            return tensor
        whole = tensor.redistribute(placements=[Replicate()])
        return whole if kind == "distributed" else whole.to_local()

    def enter(module, inputs):
        hooks = saved_tensors_hooks(pack, unpack)
        hooks.__enter__()
        entered.append(hooks)

    def leave(module, inputs, outputs):
        entered.pop().__exit__(None, None, None)

    module.register_forward_pre_hook(enter)
    module.register_forward_hook(leave, always_call=True)
    return module
