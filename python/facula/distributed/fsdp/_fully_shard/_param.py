"""One parameter that is cut over ranks: its shard, and its storage while it is whole."""

from __future__ import annotations

from dataclasses import dataclass

import facula
from facula.distributed.device_mesh import DeviceMesh
from facula.distributed.tensor._api import DTensor
from facula.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from facula.distributed.tensor._redistribute import redistribute_local_tensor
from facula.distributed.tensor.placement_types import Shard, _StridedShard
from facula.nn import Parameter


@dataclass
class ParamPlace:
    """A name under which a module has a parameter."""

    module: facula.nn.Module
    name: str


class FSDPParam:
    """A parameter of which each rank has a shard.

    `sharded_param` is a DTensor, and what the optimizer updates. While the module computes, its
    places have `unsharded_param`, whose storage is filled by `receive` and emptied by `free`; it is
    one and the same Parameter for good, so that graphs and gradients stay valid while the storage
    is empty.

    Args:
        param (Parameter): a plain tensor that all ranks have, or a DTensor of tensor parallelism.
        places (list of ParamPlace): all modules that have it.
        dp (DataParallelMesh): the ranks.
        placement (Shard): the dimension that is cut.
        policy (MixedPrecisionPolicy): dtypes.
    """

    def __init__(self, param, places, dp, placement, policy):
        self.places, self.dp, self.dim, self._policy = places, dp, placement.dim, policy
        self.fqn = None
        self._inner_spec = param._spec if isinstance(param, DTensor) else None
        local = param._local_tensor if self._inner_spec is not None else param.data
        self.local_shape = tuple(local.shape)  # of the whole, as this rank computes with it
        if not local.dim():
            raise ValueError(
                f"fully_shard(): expected parameters of at least one dimension; "
                f"got a scalar, {places[0].name}"
            )
        if not -local.dim() <= self.dim < local.dim():
            raise ValueError(
                f"fully_shard(): expected a dimension below {local.dim()} to shard; got {self.dim}"
            )
        self.dim %= local.dim()
        self._set_dtypes(param)
        self._set_sizes()
        self._spec = self._sharded_spec(param)
        self.sharded_param = self._new_sharded(param, local)
        self.unsharded_param = self._storage = None
        self.is_unsharded = self.keep_storage = False
        self.accumulated_grad = None  # of passes whose gradients were not reduced
        self._put(self.sharded_param)

    def _set_dtypes(self, param):
        policy = self._policy
        self.orig_dtype = param.dtype
        wanted = policy.param_dtype
        if policy.param_dtype_override_fn is not None:
            given = policy.param_dtype_override_fn(param)
            wanted = wanted if given is None else given
        is_float = param.is_floating_point()
        self.param_dtype = wanted if wanted is not None and is_float else self.orig_dtype
        self.reduce_dtype = policy.reduce_dtype or self.param_dtype

    def _set_sizes(self):
        rows, count = self.local_shape[self.dim], self.dp.shard_size
        self.rows_of_shard = -(-rows // count)
        self.numel_of_row = facula.Size(self.local_shape).numel() // max(1, rows)
        self.padded_numel = self.rows_of_shard * self.numel_of_row
        self.is_even = rows % count == 0

    def rows_of(self, rank):
        """Where the rows of a rank's shard begin and end."""
        rows = self.local_shape[self.dim]
        start = min(rank * self.rows_of_shard, rows)
        return start, min(start + self.rows_of_shard, rows)

    def shape_of(self, rank):
        """The shape of a rank's shard."""
        start, end = self.rows_of(rank)
        return (*self.local_shape[: self.dim], end - start, *self.local_shape[self.dim + 1 :])

    # --- the shard

    def _sharded_spec(self, param):
        meta = TensorMeta(param.shape, tuple(param.stride()), param.dtype)
        shard, inner = Shard(self.dim), self._inner_spec
        if inner is None:
            return DTensorSpec(self.dp.mesh, self.dp.placements(shard), meta)
        mesh = DeviceMesh._concatenate([self.dp.mesh, inner.mesh])
        cuts = 1
        for i, placement in enumerate(inner.placements):
            if placement.is_shard(self.dim):
                cuts *= inner.mesh.size(i)
        if cuts > 1:
            shard = _StridedShard(self.dim, split_factor=cuts)
        return DTensorSpec(mesh, (*self.dp.placements(shard), *inner.placements), meta)

    def _new_sharded(self, param, local):
        start, end = self.rows_of(self.dp.shard_rank)
        with facula.no_grad():
            part = local.narrow(self.dim, start, end - start)
            part = part.clone(memory_format=facula.contiguous_format)
        made = Parameter(DTensor(part, self._spec), requires_grad=param.requires_grad)
        for name, value in vars(param).items():
            if name not in ("_spec", "_local_tensor"):
                setattr(made, name, value)
        return made

    def sharded(self, local):
        """The DTensor of a shard."""
        meta = self._spec.tensor_meta._replace(dtype=local.dtype)
        return DTensor(local, DTensorSpec(self._spec.mesh, self._spec.placements, meta))

    @property
    def shard(self):
        """This rank's part, a plain tensor."""
        return self.sharded_param._local_tensor.detach()

    def read_places(self):
        """Take the parameter that the module has now, which `load_state_dict` may have put."""
        place = self.places[0]
        current = place.module._parameters.get(place.name)
        if current is None or current is self.unsharded_param:
            return
        if current is self.sharded_param and current.dtype == self.orig_dtype:
            return
        if not isinstance(current, DTensor):
            raise RuntimeError(
                f"fully_shard(): expected a DTensor as {self.fqn or place.name}; got a plain tensor"
            )
        self.sharded_param, self._spec = current, current._spec
        self._set_dtypes(current)
        self.unsharded_param = self._storage = None
        self._put(current)

    def _put(self, param):
        for place in self.places:
            place.module._parameters[place.name] = param

    # --- the whole

    def _make_unsharded(self):
        """The Parameter for computation, over a flat storage that `receive` fills."""
        padded = self.padded_numel * self.dp.shard_size
        numel = padded if self.dim == 0 else facula.Size(self.local_shape).numel()
        self._storage = facula.empty(
            numel, dtype=self.param_dtype, device=self.sharded_param.device
        )
        self._nbytes = self._storage.untyped_storage().nbytes()
        whole = self._storage[: facula.Size(self.local_shape).numel()].view(self.local_shape)
        # Of `.data`, so that filling the storage again is no change that autograd objects to.
        whole = whole.data
        if self._inner_spec is not None:
            meta = self._inner_spec.tensor_meta._replace(dtype=self.param_dtype)
            spec = DTensorSpec(self._inner_spec.mesh, self._inner_spec.placements, meta)
            whole = DTensor(whole, spec)
        self.unsharded_param = Parameter(whole, requires_grad=self.sharded_param.requires_grad)
        for name, value in vars(self.sharded_param).items():
            if name not in ("_spec", "_local_tensor"):
                setattr(self.unsharded_param, name, value)

    def allocate(self):
        """Make room for the whole.

        Returns:
            Tensor: flat; the shards one after the other, each padded, if dimension 0 is cut
        """
        if self.unsharded_param is None:
            self._make_unsharded()
        elif not self._storage.untyped_storage().nbytes():
            self._storage.untyped_storage().resize_(self._nbytes)
        return self._storage

    def receive(self, gathered):
        """Fill the whole with shards.

        Args:
            gathered (Tensor): the padded shard of each rank, of shape (ranks, elements).
        """
        storage = self.allocate()
        if self.dim == 0:
            storage.view(gathered.shape).copy_(gathered)
            return
        whole = storage.view(self.local_shape)
        for rank in range(self.dp.shard_size):
            start, end = self.rows_of(rank)
            shape = self.shape_of(rank)
            part = gathered[rank, : facula.Size(shape).numel()].view(shape)
            whole.narrow(self.dim, start, end - start).copy_(part)

    def use_unsharded(self):
        """Have modules compute with the whole."""
        if self.unsharded_param.requires_grad != self.sharded_param.requires_grad:
            self.unsharded_param.requires_grad_(self.sharded_param.requires_grad)
        self._put(self.unsharded_param)
        self.is_unsharded = True

    def use_sharded(self):
        """Have modules show the shard, and free the storage of the whole."""
        self._put(self.sharded_param)
        self.is_unsharded = False
        self.free()

    def free(self):
        """Empty the storage of the whole."""
        if self._storage is not None and not self.keep_storage:
            self._storage.untyped_storage().resize_(0)

    # --- gradients

    def take_grad(self, zeros=False):
        """The gradient of the whole as a plain tensor, with that of passes before, or None.

        Args:
            zeros (bool): zeros in place of None, if the parameter requires grad.
        """
        grad = self.accumulated_grad
        if self.unsharded_param is not None and self.unsharded_param.grad is not None:
            new = self._local_grad().to(self.reduce_dtype)
            grad = new if grad is None else grad.add_(new)
            self.unsharded_param.grad = None
        self.accumulated_grad = None
        if grad is None and zeros and self.sharded_param.requires_grad:
            return facula.zeros(self.local_shape, dtype=self.reduce_dtype)
        return grad

    def keep_grad(self):
        """Keep the gradient of a pass that is not to be reduced, in the dtype of reductions."""
        self.accumulated_grad = self.take_grad()

    def _local_grad(self):
        grad = self.unsharded_param.grad
        if not isinstance(grad, DTensor):
            return grad.detach()
        wanted = tuple(self._inner_spec.placements)
        target = DTensorSpec(grad._spec.mesh, wanted, grad._spec.tensor_meta)
        return redistribute_local_tensor(grad._local_tensor, grad._spec, target).detach()

    def fill_chunks(self, grad, chunks):
        """Write what each rank is to get.

        Args:
            grad (Tensor): the gradient of the whole.
            chunks (Tensor): of shape (ranks, elements of a padded shard).
        """
        if self.dim == 0:
            self._fill_rows(grad.reshape(-1), chunks)
            return
        for rank in range(self.dp.shard_size):
            start, end = self.rows_of(rank)
            numel = (end - start) * self.numel_of_row
            if numel:
                part = grad.narrow(self.dim, start, end - start)
                chunks[rank, :numel].view(part.shape).copy_(part)
            if numel < chunks.shape[1]:
                chunks[rank, numel:].zero_()

    def _fill_rows(self, flat, chunks):
        """The same where shards follow each other: few operators however many ranks there are."""
        width = chunks.shape[1]
        whole, rest = divmod(flat.numel(), width)
        if whole:
            chunks[:whole].copy_(flat[: whole * width].view(whole, width))
        if rest:
            chunks[whole, :rest].copy_(flat[whole * width :])
            chunks[whole, rest:].zero_()
            whole += 1
        if whole < self.dp.shard_size:
            chunks[whole:].zero_()

    def add_grad(self, reduced):
        """Add a reduced gradient to that of the shard.

        Args:
            reduced (Tensor): flat, padded.
        """
        shape = self.shape_of(self.dp.shard_rank)
        new = reduced[: facula.Size(shape).numel()].view(shape).to(self.orig_dtype)
        if self.sharded_param.grad is None:
            self.sharded_param.grad = self.sharded(new)
        else:
            self.sharded_param.grad._local_tensor.add_(new)
