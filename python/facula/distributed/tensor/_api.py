"""DTensor: a tensor of which each rank of a mesh has a part."""

from __future__ import annotations

import facula
from facula.distributed import _waited_collectives as collectives
from facula.distributed.device_mesh import DeviceMesh, _mesh_resources
from facula.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from facula.distributed.tensor._redistribute import (
    Redistribute,
    gradient_placements,
    redistribute_local_tensor,
)
from facula.distributed.tensor._utils import (
    compute_global_tensor_info,
    compute_local_shape,
    compute_local_shape_and_global_offset,
    normalized,
)
from facula.distributed.tensor.placement_types import Placement, Replicate, Shard

_MODULE = "facula.distributed.tensor"


def _mesh_or_current(mesh):
    return mesh if mesh is not None else _mesh_resources.get_current_mesh()


def _check_tensor(name, value):
    if not isinstance(value, facula.Tensor):
        raise TypeError(f"{name}(): expected a Tensor; got {type(value).__name__}")


def _placed(placements, mesh, ndim):
    """Placements, by default all Replicate, with dimensions counted from the front."""
    if placements is None:
        return (Replicate(),) * mesh.ndim
    placements = tuple(placements)
    for placement in placements:
        if not isinstance(placement, Placement):
            raise TypeError(
                f"expected placements as Shard(0), Replicate() or Partial(); got {placement!r}"
            )
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"expected a placement for each of {mesh.ndim} dimensions of the mesh; got {placements}"
        )
    return normalized(placements, ndim)


class _ToLocal(facula.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, grad_placements):
        ctx.spec, ctx.grad_placements = tensor._spec, grad_placements
        local = tensor._local_tensor
        return local.view_as(local)

    @staticmethod
    def backward(ctx, grad):
        spec = ctx.spec
        # The gradient of each rank's use of a term or of the whole is taken for that of the whole.
        placements = gradient_placements((Replicate(),) * spec.mesh.ndim, spec.placements)
        if ctx.grad_placements is not None:
            placements = ctx.grad_placements
        meta = spec.tensor_meta._replace(dtype=grad.dtype)
        return DTensor(grad, DTensorSpec(spec.mesh, placements, meta)), None


class _FromLocal(facula.autograd.Function):
    @staticmethod
    def forward(ctx, local, mesh, placements, shape, stride, grad_placements):
        ctx.placements = placements if grad_placements is None else grad_placements
        meta = TensorMeta(facula.Size(shape), tuple(stride), local.dtype)
        return DTensor(local.view_as(local), DTensorSpec(mesh, placements, meta))

    @staticmethod
    def backward(ctx, grad):
        spec = grad._spec
        wanted = gradient_placements(spec.placements, ctx.placements)
        target = DTensorSpec(spec.mesh, wanted, spec.tensor_meta)
        local = redistribute_local_tensor(grad._local_tensor, spec, target)
        return local, None, None, None, None, None


class DTensor(facula.Tensor):
    """A tensor of which each rank of a mesh has a part.

    It is made by `distribute_tensor`, `DTensor.from_local` or a function such as
    `facula.distributed.tensor.zeros`, and used as any tensor: each rank computes on its part, and
    collectives run where an operator needs other parts.

    Example:
        >>> def work(rank):
        ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
        ...     x = distribute_tensor(facula.arange(4.0), mesh, [Shard(0)])
        ...     return (x * 2).to_local().tolist()
        >>> facula.distributed.threads.run(work, 2)
        [[0.0, 2.0], [4.0, 6.0]]
    """

    __torch_function__ = facula._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, local_tensor, spec, *, requires_grad=False):
        if local_tensor.requires_grad and not requires_grad and not facula.is_grad_enabled():
            local_tensor = local_tensor.detach()
        meta = spec._meta()
        made = facula.Tensor._make_wrapper_subclass(
            cls,
            meta.shape,
            strides=meta.stride,
            dtype=local_tensor.dtype,
            device=local_tensor.device,
            layout=local_tensor.layout,
            requires_grad=requires_grad,
        )
        made._spec = spec
        made._local_tensor = local_tensor
        return made

    def __init__(self, *args, **kwargs):
        pass

    def __repr__(self, *, tensor_contents=None):
        return (
            f"DTensor(local_tensor={self._local_tensor}, device_mesh={self._spec.mesh}, "
            f"placements={self._spec.placements})"
        )

    def __tensor_flatten__(self):
        return ["_local_tensor"], (self._spec, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner_tensors, flatten_spec, outer_size, outer_stride):
        spec, requires_grad = flatten_spec
        meta = TensorMeta(facula.Size(outer_size), tuple(outer_stride), spec.tensor_meta.dtype)
        spec = DTensorSpec(spec.mesh, spec.placements, meta)
        return DTensor(inner_tensors["_local_tensor"], spec, requires_grad=requires_grad)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        from facula.distributed.tensor._dispatch import dispatch

        return dispatch(func, args, kwargs or {})

    def __reduce_ex__(self, protocol):
        return _remake, (self._local_tensor.detach(), self._spec, self.requires_grad, type(self))

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        with facula.no_grad():
            local = self._local_tensor.detach().clone()
        made = DTensor(local, self._spec, requires_grad=self.requires_grad)
        if isinstance(self, facula.nn.Parameter):
            made = facula.nn.Parameter(made, requires_grad=self.requires_grad)
        memo[id(self)] = made
        return made

    # --- what it is

    @property
    def device_mesh(self):
        """The mesh."""
        return self._spec.mesh

    @property
    def placements(self):
        """A placement for each dimension of the mesh."""
        return self._spec.placements

    # --- to parts and back

    @staticmethod
    def from_local(
        local_tensor,
        device_mesh=None,
        placements=None,
        *,
        run_check=False,
        shape=None,
        stride=None,
        grad_placements=None,
    ):
        """The DTensor of which this rank has a part.

        Args:
            local_tensor (Tensor): the part.
            device_mesh (DeviceMesh): default that of the enclosing `with`.
            placements (sequence of Placement): default `Replicate()` everywhere.
            run_check (bool): check that shapes fit, and take replicas from the first rank.
            shape (sequence of int): of the whole; default as if all parts had this one's shape.
            stride (sequence of int): of the whole; given if `shape` is.
            grad_placements (sequence of Placement): how the gradient comes back.

        Returns:
            DTensor

        Raises:
            RuntimeError: a placement names a dimension that is not there; shape without stride.

        Example:
            >>> def work(rank):
            ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
            ...     return DTensor.from_local(facula.ones(1), mesh, [Shard(0)]).shape
            >>> facula.distributed.threads.run(work, 2)[0]
            facula.Size([2])
        """
        if isinstance(local_tensor, DTensor):
            raise RuntimeError("from_local(): expected a part, a plain tensor; got a DTensor")
        _check_tensor("from_local", local_tensor)
        mesh = _mesh_or_current(device_mesh)
        placements = _placed(placements, mesh, local_tensor.dim())
        if grad_placements is not None:
            grad_placements = _placed(grad_placements, mesh, local_tensor.dim())
        if (shape is None) != (stride is None):
            raise RuntimeError(
                f"from_local(): expected shape and stride together; got {shape} and {stride}"
            )
        inferred = compute_global_tensor_info(local_tensor, mesh, placements)
        if shape is None:
            shape, stride = inferred
        if mesh.get_coordinate() is None:
            local_tensor = local_tensor.new_empty(0, requires_grad=local_tensor.requires_grad)
        elif run_check:
            local_tensor = _checked_part(local_tensor, mesh, placements, shape)
        return _FromLocal.apply(local_tensor, mesh, placements, shape, stride, grad_placements)

    def to_local(self, *, grad_placements=None):
        """This rank's part.

        Args:
            grad_placements (sequence of Placement): how the gradient of the part lies; default as
                the tensor, and for terms as a whole.

        Returns:
            Tensor
        """
        if not facula.is_grad_enabled():
            return self._local_tensor
        if grad_placements is not None:
            grad_placements = normalized(tuple(grad_placements), self.dim())
        return _ToLocal.apply(self, grad_placements)

    def redistribute(
        self,
        device_mesh=None,
        placements=None,
        *,
        async_op=False,
        forward_dtype=None,
        backward_dtype=None,
    ):
        """The same tensor under other placements.

        Args:
            device_mesh (DeviceMesh): that of the tensor.
            placements (sequence of Placement): one for each dimension of the mesh.
            async_op (bool): has no effect: collectives have ended when this returns.
            forward_dtype (dtype): cast to it before data moves.
            backward_dtype (dtype): cast the gradient to it before data moves.

        Returns:
            DTensor

        Raises:
            RuntimeError: no placements, or one that would make terms of a whole.
            NotImplementedError: the mesh is another.
        """
        if placements is None:
            raise RuntimeError("redistribute(): expected placements; got none")
        mesh = device_mesh if device_mesh is not None else self.device_mesh
        if mesh != self.device_mesh:
            raise NotImplementedError(
                f"redistribute(): expected the mesh of the tensor, {self.device_mesh}; got {mesh}"
            )
        placements = _placed(placements, mesh, self.dim())
        for before, after in zip(self.placements, placements, strict=True):
            if after.is_partial() and before != after and not before.is_shard():
                raise RuntimeError(
                    f"redistribute(): expected {after} from shards alone; got {before}"
                )
            if isinstance(after, Shard) and not 0 <= after.dim < self.dim():
                raise IndexError(
                    f"redistribute(): expected dimensions below {self.dim()}; got {after}"
                )
        return Redistribute.apply(self, mesh, placements, forward_dtype, backward_dtype)

    def full_tensor(self, *, grad_placements=None):
        """The whole tensor, at every rank.

        Args:
            grad_placements (sequence of Placement): how the gradient of the whole lies; default
                the same at all ranks.

        Returns:
            Tensor

        Example:
            >>> from facula.distributed.tensor import DTensor, Partial
            >>> def work(rank):
            ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
            ...     return DTensor.from_local(facula.ones(1), mesh, [Partial()]).full_tensor()
            >>> facula.distributed.threads.run(work, 2)
            [tensor([2.]), tensor([2.])]
        """
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return _ToLocal.apply(
            whole,
            None if grad_placements is None else normalized(tuple(grad_placements), self.dim()),
        )

    def numpy(self, *, force=False):
        """RuntimeError: a DTensor has no memory of its own."""
        raise RuntimeError(
            "numpy(): expected a plain tensor; got a DTensor (to_local(), full_tensor() give one)"
        )

    # --- for checkpoints

    def _raise_if_contains_partial_placements(self):
        if any(p.is_partial() for p in self.placements):
            raise ValueError(f"expected a tensor without terms; got {self.placements}")

    def __create_chunk_list__(self):
        """Where this rank's part begins and how large it is, for a checkpoint."""
        from facula.distributed.checkpoint.metadata import ChunkStorageMetadata

        self._raise_if_contains_partial_placements()
        sizes, offsets = compute_local_shape_and_global_offset(
            self.shape, self.device_mesh, self.placements
        )
        return [ChunkStorageMetadata(offsets=facula.Size(offsets), sizes=facula.Size(sizes))]

    def __get_tensor_shard__(self, index):
        """This rank's part, for a checkpoint."""
        self._raise_if_contains_partial_placements()
        return self.to_local()


DTensor.__module__ = _MODULE


def _remake(local, spec, requires_grad, cls):
    made = DTensor(local, spec, requires_grad=requires_grad)
    return facula.nn.Parameter(made, requires_grad) if cls is facula.nn.Parameter else made


def _checked_part(local, mesh, placements, shape):
    """The part of a DTensor whose replicas come from the first rank of each group."""
    wanted = compute_local_shape(shape, mesh, placements)
    if tuple(local.shape) != wanted:
        raise RuntimeError(f"from_local(): expected a part of shape {wanted}; got {local.shape}")
    for i, placement in enumerate(placements):
        if placement.is_replicate():
            local = _from_rank(local, mesh, i, 0)
    return local


def _from_rank(tensor, mesh, i, source):
    """The tensor of the rank at `source` of the group along dimension `i`."""
    group = mesh.get_group(i)
    ranks = facula.distributed.get_process_group_ranks(group)
    return collectives.broadcast(tensor.contiguous(), ranks[source], group)


# --- from whole tensors


def distribute_tensor(tensor, device_mesh=None, placements=None, *, src_data_rank=0):
    """Spread a tensor over the ranks of a mesh.

    Args:
        tensor (Tensor): a leaf; all ranks have its shape.
        device_mesh (DeviceMesh): default that of the enclosing `with`.
        placements (sequence of Placement): default `Replicate()` everywhere.
        src_data_rank (int): the rank along each dimension whose values are taken; None for each
            rank's own, without communication.

    Returns:
        DTensor: a leaf

    Raises:
        RuntimeError: the tensor is no leaf, or a DTensor that lies otherwise.
        ValueError: another number of placements than the mesh has dimensions.

    Example:
        >>> def work(rank):
        ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
        ...     x = distribute_tensor(facula.arange(3), mesh, [Shard(0)])
        ...     return x.to_local()
        >>> facula.distributed.threads.run(work, 2)
        [tensor([0, 1]), tensor([2])]
    """
    _check_tensor("distribute_tensor", tensor)
    mesh = _mesh_or_current(device_mesh)
    if not tensor.is_leaf:
        raise RuntimeError("distribute_tensor(): expected a leaf; got the result of an operation")
    placements = _placed(placements, mesh, tensor.dim())
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh or tensor.placements != placements:
            raise ValueError(
                "distribute_tensor(): expected a plain tensor, or a DTensor that lies so; "
                f"got {tensor.placements} for {placements}"
            )
        return tensor
    for placement in placements:
        if isinstance(placement, Shard) and not 0 <= placement.dim < tensor.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of "
                f"[{-tensor.dim()}, {tensor.dim() - 1}], but got {placement.dim})"
            )
    if tensor.device.type not in (mesh.device_type, "meta"):
        tensor = tensor.to(mesh.device_type)
    local = _part_of_whole(tensor.detach(), mesh, placements, src_data_rank)
    meta = TensorMeta(tensor.shape, tensor.stride(), tensor.dtype)
    made = DTensor(local, DTensorSpec(mesh, placements, meta), requires_grad=tensor.requires_grad)
    if isinstance(tensor, facula.nn.Parameter):
        return facula.nn.Parameter(made, requires_grad=tensor.requires_grad)
    return made


def _part_of_whole(local, mesh, placements, source):
    if mesh.get_coordinate() is None:
        return local.new_empty(0)
    own = source is None or local.is_meta
    for i, placement in enumerate(placements):
        if not own and mesh.size(i) > 1:
            local = _from_rank(local, mesh, i, source)
        if isinstance(placement, Shard):
            local = placement._part(local, mesh.size(i), mesh.get_local_rank(i)).clone()
        elif placement.is_partial():
            local = placement._partition_value(local, mesh, i)
    return local.clone(memory_format=facula.contiguous_format) if own else local.contiguous()


def distribute_module(module, device_mesh=None, partition_fn=None, input_fn=None, output_fn=None):
    """Make the parameters and buffers of a module DTensors, and prepare inputs and outputs.

    Args:
        module (Module): changed in place.
        device_mesh (DeviceMesh): default that of the enclosing `with`.
        partition_fn (callable): called with the name of each submodule, the submodule and the mesh,
            to distribute its parameters; what it leaves alone is replicated.
        input_fn (callable): called with the module, its inputs and the mesh before each call.
        output_fn (callable): called with the module, its results and the mesh after each call.

    Returns:
        Module

    Raises:
        RuntimeError: the module has been distributed already.

    Example:
        >>> def work(rank):
        ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
        ...     return distribute_module(facula.nn.Linear(2, 2), mesh).weight.placements
        >>> facula.distributed.threads.run(work, 2)[0]
        (Replicate(),)
    """
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError("distribute_module(): expected a module once; got it again")
    mesh = _mesh_or_current(device_mesh)
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        _replicate(part, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, inputs, outputs: output_fn(m, outputs, mesh))
    module._distribute_module_applied = True
    return module


def _replicate(module, mesh):
    everywhere = [Replicate()] * mesh.ndim
    for name, parameter in list(module._parameters.items()):
        if parameter is not None and not isinstance(parameter, DTensor):
            module.register_parameter(
                name,
                facula.nn.Parameter(
                    distribute_tensor(parameter.data, mesh, everywhere),
                    requires_grad=parameter.requires_grad,
                ),
            )
    for name, buffer in list(module._buffers.items()):
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[name] = distribute_tensor(buffer, mesh, everywhere)


__all__ = ["DTensor", "DeviceMesh", "distribute_module", "distribute_tensor"]
