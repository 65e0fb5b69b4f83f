"""The parameters that are gathered and whose gradients are reduced together."""

from __future__ import annotations

import contextlib

import facula
import facula.distributed as dist
from facula.distributed.fsdp._fully_shard._param import FSDPParam

# Shards of at least so many bytes are gathered into, and gradients reduced from, their own storage;
# smaller ones are copied into one buffer, since a collective costs as much as that copy.
ALONE_BYTES = 1 << 17


class CommContext:
    """What the groups of a model share.

    Attributes:
        post_forward_order (list of FSDPParamGroup): as forward has used them.
        pending (list of GradientReduction): reductions that are under way.
    """

    def __init__(self):
        self.post_forward_order = []
        self.pending = []

    def finish_reductions(self, keep=0):
        """Wait for reductions that are under way, but for the last `keep`."""
        while len(self.pending) > keep:
            self.pending.pop(0).finish()


class GatherWork:
    """An all-gather of the shards of a group that is under way."""

    def __init__(self):
        self.works = []
        self.batches = []  # (parameters, what was gathered of them)

    def finish(self, params):
        """Wait, and fill the storage of the parameters."""
        for work in self.works:
            if work is not None:
                work.wait()
        for batch, gathered in self.batches:
            offset = 0
            for p in batch:
                p.receive(gathered[:, offset : offset + p.padded_numel])
                offset += p.padded_numel
        self.works, self.batches = [], []


class GradientReduction:
    """A reduction of gradients of a group that is under way."""

    def __init__(self, group):
        self._group = group
        self._parts = []  # (parameters, work, reduced, what must live until then)

    def add(self, params, work, reduced, source):
        """Note a collective: it reduces `source` to `reduced`, the shards of `params`."""
        self._parts.append((params, work, reduced, source))

    def finish(self):
        """Wait, reduce over copies, divide, and add to the gradients of the shards."""
        group, parts = self._group, self._parts
        self._parts = []
        while parts:
            params, work, reduced, source = parts.pop(0)
            if work is not None:
                work.wait()
            del source
            reduced = group.reduce_over_copies(params, reduced)
            if reduced is None:
                continue
            offset = 0
            for p in params:
                p.add_grad(reduced[offset : offset + p.padded_numel])
                offset += p.padded_numel
        if group.on_reduced is not None:
            group.on_reduced()


def _by_dtype(params, dtype_of):
    found = {}
    for p in params:
        found.setdefault(dtype_of(p), []).append(p)
    return found


@contextlib.contextmanager
def _normal_tensors():
    """No graphs, but no inference tensors either: a later pass may be one of training."""
    with facula.inference_mode(False), facula.no_grad():
        yield


class FSDPParamGroup:
    """The parameters of a module that `fully_shard` was called with.

    Args:
        params (dict): each Parameter with its places, a list of ParamPlace.
        dp (DataParallelMesh): the ranks.
        placement_of (callable): the Shard of a parameter.
        policy (MixedPrecisionPolicy): dtypes.
        name (str): of the module, for errors.
    """

    def __init__(self, params, dp, placement_of, policy, name):
        self.dp, self.policy, self.name = dp, policy, name
        self.params = [FSDPParam(p, at, dp, placement_of(p), policy) for p, at in params.items()]
        self.context = CommContext()
        self.reshard_after_forward = self.reshard_after_backward = True
        self.post_forward = None  # PostForwardParts, where a few ranks keep the whole
        self.reduce_grads = self.all_reduce_grads = True
        self.unshard_async = False
        self.divide_factor = None
        self.max_reductions = 1
        self.reduce_unused = False
        self.all_reduce_hook = self.on_reduced = None
        self.whole_hook = None  # averages gradients in place of the all-reduce over copies
        self.gather = dist.all_gather_into_tensor
        self.reduce_scatter = reduce_scatter
        self._gathering = None
        self._versions = None
        self._partial_reduced = {}  # sums over shards that are still to be added over copies
        self.forward_places = []

    def set_comm_hook(self, state, hook):
        """Have a function of (state, gradient, shard) reduce gradients, or of (state, gradient)."""

        def call(output_tensor, input_tensor, group, op, async_op=False):
            hook(state, input_tensor, output_tensor)

        self.reduce_scatter = call
        self.whole_hook = None if self.dp.shard_group is not None else lambda g: hook(state, g)

    # --- parameters

    @property
    def is_unsharded(self):
        """Whether the modules have whole parameters."""
        return any(p.is_unsharded for p in self.params)

    def _shard_versions(self):
        return [(id(p.sharded_param), p.sharded_param._local_tensor._version) for p in self.params]

    def unshard(self, async_op=False):
        """Begin to gather the parameters, unless they are whole.

        Args:
            async_op (bool): have them gathered while the program goes on.
        """
        if self._gathering is not None or not self.params:
            return
        if self.is_unsharded:
            if self._versions == self._shard_versions():
                return
            # An optimizer has changed the shards since.
            self.reshard()
        for p in self.params:
            p.read_places()
        if self._unshard_from_parts():
            return
        gathering = GatherWork()
        with _normal_tensors():
            self._begin_gather(gathering, async_op)
        self._gathering = gathering

    def _unshard_from_parts(self):
        """Make the parameters whole from what neighbours have kept since forward, if they have."""
        parts = self.post_forward
        if parts is None or not parts.is_kept:
            return False
        if self._versions != self._shard_versions():
            parts.drop()
            return False
        with _normal_tensors():
            parts.gather(self.params)
            for p in self.params:
                p.use_unsharded()
        return True

    def _begin_gather(self, gathering, async_op):
        for dtype, params in _by_dtype(self.params, lambda p: p.param_dtype).items():
            batch = []
            for p in params:
                nbytes = p.padded_numel * p.param_dtype.itemsize
                if p.dim == 0 and p.is_even and nbytes >= ALONE_BYTES:
                    self._gather_into(gathering, p.allocate(), p.shard.to(dtype), async_op)
                else:
                    batch.append(p)
            if batch:
                mine = _padded(batch, dtype)
                out = mine.new_empty(self.dp.shard_size, mine.numel())
                self._gather_into(gathering, out, mine, async_op)
                gathering.batches.append((batch, out))

    def _gather_into(self, gathering, out, mine, async_op):
        out, mine = out.view(-1), mine.reshape(-1)
        if self.dp.shard_group is None or not mine.numel():
            out.copy_(mine)
            return
        gathering.works.append(
            self.gather(
                output_tensor=out,
                input_tensor=mine,
                group=self.dp.shard_group,
                async_op=async_op,
            )
        )

    def wait_for_unshard(self):
        """Wait for the parameters, and have modules compute with them."""
        if self._gathering is None:
            return
        gathering, self._gathering = self._gathering, None
        with _normal_tensors():
            gathering.finish(self.params)
            for p in self.params:
                p.use_unsharded()
        self._versions = self._shard_versions()

    def reshard(self):
        """Have modules show shards, and free the storage of whole parameters."""
        self.wait_for_unshard()
        if self.is_unsharded:
            for p in self.params:
                p.use_sharded()

    def reshard_for_backward(self):
        """Show shards between forward and backward, and keep what backward is to gather."""
        self.wait_for_unshard()
        if self.post_forward is not None and self.is_unsharded:
            with _normal_tensors():
                self.post_forward.keep(self.params)
        self.reshard()

    # --- passes

    def after_forward(self):
        """Note the place of the group in the order of forward, for prefetching."""
        self.forward_places.append(len(self.context.post_forward_order))
        self.context.post_forward_order.append(self)

    def prefetch_for_backward(self):
        """Begin to gather the group that backward needs next."""
        if not self.forward_places:
            return
        before = self.forward_places.pop() - 1
        order = self.context.post_forward_order
        if 0 <= before < len(order) and order[before] is not self:
            order[before].unshard(async_op=True)

    def post_backward(self):
        """Take the gradients, free the parameters, and begin the reduction."""
        with facula.no_grad():
            if not self.reduce_grads:
                for p in self.params:
                    p.keep_grad()
                if self.reshard_after_backward:
                    self.reshard()
                return
            grads = [(p, p.take_grad(self.reduce_unused)) for p in self.params]
            if self.reshard_after_backward:
                self.reshard()
            grads = [(p, grad) for p, grad in grads if grad is not None]
            if grads:
                self._reduce(grads)

    @property
    def _divisor(self):
        """What sums of gradients are divided by."""
        return self.divide_factor or self.dp.shard_size * self.dp.replicate_size

    def _reduce(self, grads):
        # Few reductions at a time: their gradients take memory.
        self.context.finish_reductions(keep=self.max_reductions - 1)
        reduction = GradientReduction(self)
        for dtype, some in _by_dtype(grads, lambda pair: pair[0].reduce_dtype).items():
            before = _factor_before(dtype, self._divisor)
            batch = []
            while some:
                p, grad = some.pop(0)
                grad = grad.to(dtype)
                alone = p.padded_numel * dtype.itemsize >= ALONE_BYTES
                if alone and p.dim == 0 and p.is_even:
                    flat = grad.contiguous().view(-1)
                    flat = flat if before == 1 else flat / before
                    self._scatter(reduction, [p], flat)
                else:
                    batch.append((p, grad))
            if batch:
                chunks = _chunks(batch, self.dp.shard_size, dtype)
                batch = [p for p, _ in batch]
                self._scatter(reduction, batch, chunks if before == 1 else chunks.div_(before))
        self.context.pending.append(reduction)

    def _scatter(self, reduction, params, source):
        source = source.view(-1)
        if self.dp.shard_group is None:
            reduction.add(params, None, source, None)
            return
        reduced = source.new_empty(source.numel() // self.dp.shard_size)
        work = None
        if reduced.numel():
            work = self.reduce_scatter(
                output_tensor=reduced,
                input_tensor=source,
                group=self.dp.shard_group,
                op=dist.ReduceOp.SUM,
                async_op=True,
            )
        reduction.add(params, work, reduced, source)

    def reduce_over_copies(self, params, reduced):
        """Add up over the ranks that have the same shards, and make the average of the sum.

        Args:
            params (list of FSDPParam): whose gradients they are.
            reduced (Tensor): the sum over the shards' ranks.

        Returns:
            Tensor, or None where it is kept until a later pass
        """
        key = tuple(id(p) for p in params)
        kept = self._partial_reduced.pop(key, None)
        if kept is not None:
            reduced = reduced.add_(kept)
        if not self.all_reduce_grads and self.dp.replicate_group is not None:
            self._partial_reduced[key] = reduced
            return None
        if self.whole_hook is not None:
            self.whole_hook(reduced)
        elif self.dp.replicate_group is not None and reduced.numel():
            dist.all_reduce(reduced, group=self.dp.replicate_group)
        after = self._divisor / _factor_before(reduced.dtype, self._divisor)
        if after != 1:
            reduced.div_(after)
        if self.all_reduce_hook is not None:
            self.all_reduce_hook(reduced)
        return reduced

    def end_pass(self):
        """Forget the order of the pass."""
        self.forward_places.clear()


def reduce_scatter(output_tensor, input_tensor, group, op, async_op=False):
    """`facula.distributed.reduce_scatter_tensor`, with the names that FSDP's users give."""
    return dist.reduce_scatter_tensor(output_tensor, input_tensor, op, group, async_op)


def _factor_before(dtype, factor):
    """What float16 is divided by before it is added up, so that sums stay finite."""
    if dtype != facula.float16:
        return 1
    before = 1
    while factor % before == 0 and factor / before > before:
        before *= 2
    return before


def _padded(params, dtype):
    """The shards of this rank, one after the other, each padded to the length at all ranks."""
    parts = []
    for p in params:
        shard = p.shard
        parts.append(shard.reshape(-1).to(dtype))
        missing = p.padded_numel - shard.numel()
        if missing:
            parts.append(parts[-1].new_zeros(missing))
    return facula.cat(parts)


def _chunks(grads, count, dtype):
    """What each rank is to get of gradients: a tensor of a row for each."""
    width = sum(p.padded_numel for p, _ in grads)
    chunks = facula.empty(count, width, dtype=dtype, device=grads[0][1].device)
    offset = 0
    for p, grad in grads:
        p.fill_chunks(grad, chunks[:, offset : offset + p.padded_numel])
        offset += p.padded_numel
    return chunks
