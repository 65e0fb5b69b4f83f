"""DistributedDataParallel: a module in many processes, each with its part of a batch."""

from __future__ import annotations

import contextlib
import copy
import inspect

import facula
from facula.distributed.algorithms.join import Join, Joinable, JoinHook
from facula.nn import Module
from facula.nn.parallel._delayed_all_reduce import DelayedAllReduce
from facula.nn.parallel._mixed_precision import (
    CastParameters,
    _MixedPrecision,
    cast_buffers,
    cast_inputs,
)

__all__ = ["DistributedDataParallel"]

_MixedPrecision.__module__ = __name__  # where pickles and users look for it

_BROADCAST_BYTES = 250 * 1024 * 1024


class DistributedDataParallel(Module, Joinable):
    """A module whose gradients are averaged over the ranks of a group.

    Each rank has a copy of the module, equal to that of rank 0 at the beginning. During a backward
    pass gradients are averaged in buckets, each as soon as it is full.

    Args:
        module (Module): the module, `module` in here.
        device_ids (list), output_device: devices of an accelerator; None on the CPU.
        dim (int): has no effect.
        broadcast_buffers (bool): before each forward pass, copy rank 0's buffers to all. Default
            True.
        init_sync (bool): check that all ranks have the same parameters, and copy rank 0's to all.
        process_group (ProcessGroup): the ranks; default all.
        bucket_cap_mb (float): MiB at which a bucket is full; default 25.
        find_unused_parameters (bool): look for parameters that outputs do not depend on.
        check_reduction (bool): has no effect.
        gradient_as_bucket_view (bool): have gradients be parts of the buckets, which saves their
            memory.
        static_graph (bool): all passes use the same parameters in the same way.
        delay_all_reduce_named_params (list): (name, Parameter) of those whose gradients are
            averaged together, late in a backward pass.
        param_to_hook_all_reduce (Parameter): when it has its gradient, they are.
        mixed_precision (_MixedPrecision): dtypes to compute and to communicate in.
        device_mesh (DeviceMesh): the ranks, in place of `process_group`. Parameters that are
            DTensors on another dimension of the mesh become this rank's parts.
        skip_all_reduce_unused_params, batched_grad_copy, lazy_bucket_allocation (bool): have no
            effect.
        bucket_cap_mb_list (list): MiB of the first, second, ... bucket; the last holds for all
            others.
        forward_sync_buffers (bool): another name of `broadcast_buffers`.

    Raises:
        ValueError: there is no process group, a device is given for a module on the CPU, or only
            one of delay_all_reduce_named_params and param_to_hook_all_reduce.
        RuntimeError: no parameter requires a gradient, ranks have different parameters, or a
            device_mesh of several dimensions or beside a process_group.

    Example:
        >>> import facula.distributed as dist
        >>> def train(rank):
        ...     model = facula.nn.parallel.DistributedDataParallel(facula.nn.Linear(2, 1))
        ...     model(facula.full((1, 2), float(rank))).sum().backward()
        ...     return model.module.weight.grad.tolist()
        >>> dist.threads.run(train, 2)
        [[[0.5, 0.5]], [[0.5, 0.5]]]
    """

    def __init__(
        self,
        module,
        device_ids=None,
        output_device=None,
        dim=0,
        broadcast_buffers=None,
        init_sync=True,
        process_group=None,
        bucket_cap_mb=None,
        find_unused_parameters=False,
        check_reduction=False,
        gradient_as_bucket_view=False,
        static_graph=False,
        delay_all_reduce_named_params=None,
        param_to_hook_all_reduce=None,
        mixed_precision=None,
        device_mesh=None,
        skip_all_reduce_unused_params=False,
        bucket_cap_mb_list=None,
        batched_grad_copy=False,
        forward_sync_buffers=None,
        lazy_bucket_allocation=False,
    ):
        super().__init__()
        Joinable.__init__(self)
        from facula.distributed.distributed_c10d import _get_default_group

        self.device_mesh = device_mesh
        if device_mesh is not None:
            process_group = _group_of_mesh(device_mesh, process_group)
            from facula.distributed.tensor.parallel.ddp import _pre_dp_module_transform

            _pre_dp_module_transform(module)
        self.process_group = process_group or _get_default_group()
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", []))
        delayed = _delayed_params(delay_all_reduce_named_params, param_to_hook_all_reduce)
        self._delayed_names = list(delayed)
        self.parameters_to_ignore |= set(delayed)
        _check_module(module, device_ids, output_device)
        self.module, self.dim = module, dim
        self.device_ids = self.output_device = None
        self.device = next(p.device for p in module.parameters() if p.requires_grad)
        self.device_type = self.device.type
        if forward_sync_buffers is None:
            forward_sync_buffers = True if broadcast_buffers is None else broadcast_buffers
        self.forward_sync_buffers = forward_sync_buffers
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.skip_all_reduce_unused_params = skip_all_reduce_unused_params
        self.batched_grad_copy, self.lazy_bucket_allocation = (
            batched_grad_copy,
            lazy_bucket_allocation,
        )
        self.mixed_precision, self.is_multi_device_module = mixed_precision, False
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.broadcast_bucket_size = _BROADCAST_BYTES
        self.bucket_bytes_cap_default = bucket_cap_mb is None
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * 1024 * 1024)
        self.bucket_bytes_cap_list = [int(mb * 1024 * 1024) for mb in bucket_cap_mb_list or []]
        self._has_comm_hook = False
        self._find_buffers()
        if init_sync:
            self._check_same_parameters()
            self._copy_from(0, self._module_states())
        if mixed_precision is not None:
            cast_buffers(self.modules_buffers, mixed_precision.buffer_dtype)
        self._make_reducer()
        self._delayed = None
        if delayed:
            params = list(delayed.values())
            is_due = lambda: self.require_backward_grad_sync  # noqa: E731
            self._delayed = DelayedAllReduce(
                params, param_to_hook_all_reduce, self.process_group, is_due
            )

    # --- at the beginning

    def _named_parameters(self):
        return [
            (name, p)
            for name, p in self.module.named_parameters()
            if p.requires_grad and name not in self.parameters_to_ignore
        ]

    def _module_states(self):
        kept = self.module.state_dict(keep_vars=True)
        tensors = [
            t.detach()
            for name, t in kept.items()
            if isinstance(t, facula.Tensor)
            and (name not in self.parameters_to_ignore or name in self._delayed_names)
        ]
        return tensors

    def _find_buffers(self):
        self.named_module_buffers = {
            name: buffer
            for name, buffer in self.module.named_buffers()
            if name not in self.parameters_to_ignore
        }
        self.modules_buffers = list(self.named_module_buffers.values())

    def _make_reducer(self):
        from facula.distributed._reducer import FIRST_BUCKET_BYTES, Logger, Reducer

        named = self._named_parameters()
        embeddings = (facula.nn.Embedding, facula.nn.EmbeddingBag)
        sparse = {
            id(m.weight) for m in self.module.modules() if isinstance(m, embeddings) and m.sparse
        }
        first, cap = FIRST_BUCKET_BYTES, self.bucket_bytes_cap
        if self.bucket_bytes_cap_list:
            first, cap = self.bucket_bytes_cap_list[0], self.bucket_bytes_cap_list[-1]
        elif not self.bucket_bytes_cap_default:
            first = max(cap, 1)
        self.reducer = Reducer(
            [p for _, p in named],
            [name for name, _ in named],
            self.process_group,
            cap,
            first,
            self.find_unused_parameters,
            self.gradient_as_bucket_view,
            self.static_graph,
            [id(p) in sparse for _, p in named],
            self.mixed_precision and self.mixed_precision.communication_dtype(),
        )
        self.logger = Logger()

    def _check_same_parameters(self):
        """RuntimeError at all ranks if they have not the same parameters."""
        from facula.distributed.utils import _verify_same

        mine = [(n, tuple(p.shape), str(p.dtype)) for n, p in self._named_parameters()]
        _verify_same(self.process_group, mine)

    def _copy_from(self, root, tensors):
        from facula.distributed.utils import _sync_params_and_buffers

        _sync_params_and_buffers(self.process_group, tensors, self.broadcast_bucket_size, root)

    # --- a pass

    @property
    def broadcast_buffers(self):
        """Whether rank 0's buffers are copied to all before each forward pass."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value):
        self.forward_sync_buffers = value

    def will_sync_module_buffers(self):
        """Whether the next forward pass begins with a copy of rank 0's buffers."""
        wanted = self.require_forward_param_sync and self.forward_sync_buffers
        return bool(wanted and self.modules_buffers)

    def _pre_forward(self):
        syncs = facula.is_grad_enabled() and self.require_backward_grad_sync
        if self._join_config.enable:
            self._before_joined_pass(syncs)
        if syncs:
            self.reducer.check_finished()
            self.reducer.rebuild_buckets()
        if self._delayed is not None and facula.is_grad_enabled():
            self._delayed.prepare()
        if self.will_sync_module_buffers():
            self._find_buffers()
            self._copy_from(self._authoritative_rank(False), self.modules_buffers)

    def _before_joined_pass(self, syncs):
        work = Join.notify_join_context(self)
        if work is not None:
            work.wait()
            if not self._divide_by_initial_world_size:
                self.reducer.div_factor = int(work.result()[0].item())
        self._count_ranks(int(syncs))

    def _count_ranks(self, mine):
        """How many ranks that still have inputs will run a backward pass with communication."""
        count = facula.tensor([mine])
        self.process_group.allreduce([count]).wait()
        return int(count.item())

    def _authoritative_rank(self, is_joined):
        """The rank whose buffers are copied: 0, or among uneven inputs the last that has any."""
        if not self._join_config.enable:
            return 0
        rank = facula.tensor([-1 if is_joined else self.process_group.rank()])
        from facula.distributed._reduce_op import AllreduceOptions, ReduceOp

        self.process_group.allreduce([rank], AllreduceOptions(reduceOp=ReduceOp.MAX)).wait()
        return int(rank.item())

    def forward(self, *inputs, **kwargs):
        """What the module gives; the backward pass of it averages gradients."""
        self._pre_forward()
        output = self._run(inputs, kwargs)
        syncs = facula.is_grad_enabled() and self.require_backward_grad_sync
        self.require_forward_param_sync = syncs
        if syncs:
            from facula.utils._pytree import tree_leaves

            tensors = [t for t in tree_leaves(output) if isinstance(t, facula.Tensor)]
            self.reducer.prepare_for_backward(tensors)
        return output

    def _run(self, inputs, kwargs):
        if self.mixed_precision is None:
            return self.module(*inputs, **kwargs)
        inputs, kwargs = cast_inputs(self.mixed_precision.param_dtype, (inputs, kwargs))
        with self._cast_parameters():
            return self.module(*inputs, **kwargs)

    def _cast_parameters(self):
        """A scope in which the module has its parameters in the dtype to compute in."""
        left = self.parameters_to_ignore - set(self._delayed_names)
        params = [p for name, p in self.module.named_parameters() if name not in left]
        return CastParameters(self.module, params, self.mixed_precision.param_dtype)

    @contextlib.contextmanager
    def no_sync(self):
        """A scope in which gradients stay local; the first pass after it averages their sums."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def train(self, mode=True):
        """Put the module into training mode, or out of it."""
        super().train(mode)
        return self

    def scatter(self, inputs, kwargs, device_ids):
        """Arguments in parts, one for each device; they need devices that are there."""
        from facula.nn.parallel.scatter_gather import scatter_kwargs

        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def to_kwargs(self, inputs, kwargs, device_id):
        """Arguments on a device, as lists with one entry."""
        device = facula.device("cpu") if self.device_type == "cpu" else device_id

        def move(x):
            return x.to(device) if isinstance(x, facula.Tensor) else x

        from facula.utils._pytree import tree_map

        return (tree_map(move, inputs),), (tree_map(move, kwargs),)

    def gather(self, outputs, output_device):
        """Results of devices as one batch."""
        from facula.nn.parallel import gather

        return gather(outputs, output_device, dim=self.dim)

    # --- communication hooks

    def register_comm_hook(self, state, hook):
        """Have a function communicate the gradients of each bucket.

        Args:
            state (object): the function's first argument.
            hook (callable): (state, bucket: GradBucket) -> Future of a tensor like
                `bucket.buffer()`. It averages over ranks itself.

        Raises:
            TypeError: it cannot be called.
            ValueError: its annotations say that it takes or returns something else.
            RuntimeError: there is one already.
        """
        _check_comm_hook(hook)
        if self._has_comm_hook:
            raise RuntimeError("register_comm_hook(): expected to be called once; there is a hook")
        self._has_comm_hook = True
        self.reducer.register_comm_hook(state, hook)

    def _register_builtin_comm_hook(self, comm_hook_type):
        from facula.distributed import BuiltinCommHookType
        from facula.distributed.algorithms.ddp_comm_hooks import default_hooks

        hooks = {
            BuiltinCommHookType.ALLREDUCE: default_hooks.allreduce_hook,
            BuiltinCommHookType.FP16_COMPRESS: default_hooks.fp16_compress_hook,
        }
        self.register_comm_hook(self.process_group, hooks[comm_hook_type])

    def _register_fused_optim(self, optim, *args, optim_params=None, **kwargs):
        """Have parameters updated in the backward pass, each bucket once it has been averaged.

        Args:
            optim (type): the optimizer.
            optim_params (iterable of Parameter): those to update; default all.
            args, kwargs: settings of the optimizer, without parameters.
        """
        from facula.distributed.algorithms.ddp_comm_hooks import optimizer_overlap_hooks as overlap
        from facula.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
        from facula.distributed.optim import as_functional_optim

        state = overlap._OptimizerHookState(
            as_functional_optim(optim, *args, **kwargs), optim_params
        )
        hook = overlap._hook_then_optimizer(allreduce_hook, state)
        self.register_comm_hook(self.process_group, hook)

    # --- the end of a pass, by hand

    @property
    def require_manual_backward_finalization(self):
        """Whether `finalize_backward` has to be called for each backward pass; default False.

        Until it is called communication goes on, and gradients are those of this rank. It is set
        between passes.
        """
        return self.reducer.manual_finalization

    @require_manual_backward_finalization.setter
    def require_manual_backward_finalization(self, value):
        if value:
            self._check_has_buckets()
        self.reducer.require_manual_finalization(value)

    @property
    def should_finalize_after_backward(self):
        """Whether `finalize_backward` has to wait for the end of the backward pass.

        If not, a hook may call it once all gradients of this module are there.
        """
        if not self.reducer.manual_finalization:
            return False
        return self.mixed_precision is not None or self.reducer.will_rebuild()

    def finalize_backward(self):
        """Wait for the communication of a backward pass, and give parameters their gradients.

        Raises:
            RuntimeError: require_manual_backward_finalization is not set, gradients of this pass
                are missing, or there is no pass to end.
        """
        self._check_has_buckets()
        self.reducer.finalize()

    def _check_has_buckets(self):
        if not self.reducer.params:
            raise RuntimeError(
                "DistributedDataParallel: expected parameters that are not among "
                "delay_all_reduce_named_params; without them there is no pass to end by hand"
            )

    # --- uneven inputs

    def join(
        self,
        divide_by_initial_world_size=True,
        enable=True,
        throw_on_early_termination=False,
    ):
        """A scope for ranks with different numbers of inputs.

        A rank that has come to its end takes part in the communication of the others, with zeros.
        At the end all have the model of a rank that ended last.

        Args:
            divide_by_initial_world_size (bool): average over all ranks; else over those that still
                have inputs.
            enable (bool): False for a scope that does nothing.
            throw_on_early_termination (bool): have all ranks raise when the first one ends.

        Returns:
            Join
        """
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs):
        """What a rank does that has no more inputs.

        Args:
            divide_by_initial_world_size (bool): as in `join`; default True.

        Returns:
            JoinHook

        Raises:
            NotImplementedError: there are delay_all_reduce_named_params.
        """
        if self._delayed is not None:
            raise NotImplementedError(
                "DistributedDataParallel: join() with delay_all_reduce_named_params is not there "
                "yet, as ranks without inputs do not know when the others average those"
            )
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self):
        """The device of the tensors by which ranks tell each other that they have ended."""
        return self.device

    @property
    def join_process_group(self):
        """The ranks that tell each other."""
        return self.process_group

    # --- copies

    def __getstate__(self):
        if self.process_group is not facula.distributed.group.WORLD:
            raise RuntimeError(
                "DistributedDataParallel: only one over the default group can be pickled"
            )
        if self._delayed is not None:
            raise RuntimeError(
                "DistributedDataParallel: one with delay_all_reduce_named_params cannot be pickled"
            )
        state = copy.copy(self.__dict__)
        for name in ("process_group", "reducer", "logger"):
            del state[name]
        return state

    def __setstate__(self, state):
        from facula.distributed.distributed_c10d import _get_default_group

        super().__setstate__(state)
        self.process_group = _get_default_group()
        self._find_buffers()
        self._make_reducer()


class _DDPJoinHook(JoinHook):
    """Takes part in the communication of a DistributedDataParallel at other ranks."""

    def __init__(self, ddp, divide_by_initial_world_size):
        self.ddp = ddp
        ddp._divide_by_initial_world_size = divide_by_initial_world_size

    def main_hook(self):
        """One forward and backward pass of the others."""
        ddp = self.ddp
        syncs = ddp._count_ranks(0) > 0
        if syncs:
            ddp.reducer.rebuild_buckets()
        if ddp.will_sync_module_buffers():
            ddp._copy_from(ddp._authoritative_rank(True), ddp.modules_buffers)
        ddp.require_forward_param_sync = syncs
        if syncs:
            ddp.reducer.match_all_reduces()

    def post_hook(self, is_last_joiner):
        """The model of a rank that ended last, for all."""
        ddp = self.ddp
        rank = facula.tensor([ddp.process_group.rank() if is_last_joiner else -1])
        from facula.distributed._reduce_op import AllreduceOptions, ReduceOp

        ddp.process_group.allreduce([rank], AllreduceOptions(reduceOp=ReduceOp.MAX)).wait()
        ddp._copy_from(int(rank.item()), ddp._module_states())
        ddp.reducer.div_factor = ddp.process_group.size()


def _group_of_mesh(mesh, process_group):
    if process_group is not None:
        raise RuntimeError(
            "DistributedDataParallel: expected process_group or device_mesh; got both"
        )
    if mesh.ndim != 1:
        raise RuntimeError(
            f"DistributedDataParallel: expected a device_mesh of one dimension; got {mesh}"
        )
    return mesh.get_group(mesh_dim=0)


def _delayed_params(named, trigger):
    """Parameters whose gradients wait for another one, by name."""
    if (named is None) != (trigger is None):
        raise ValueError(
            "DistributedDataParallel: expected delay_all_reduce_named_params and "
            "param_to_hook_all_reduce together; got one of them"
        )
    return {name: p for name, p in named or () if p.requires_grad}


def _check_module(module, device_ids, output_device):
    from facula.nn.parameter import UninitializedParameter

    params = list(module.parameters())
    if not any(p.requires_grad for p in params):
        raise RuntimeError(
            "DistributedDataParallel: expected a module with parameters that require gradients; "
            "got one that has none"
        )
    if any(isinstance(p, UninitializedParameter) for p in params):
        raise RuntimeError(
            "DistributedDataParallel: expected initialized parameters; run the module once before"
        )
    if device_ids is not None and not device_ids:
        device_ids = None
    if device_ids is not None or output_device is not None:
        devices = sorted({str(p.device) for p in params})
        raise ValueError(
            f"DistributedDataParallel: expected no device_ids and output_device for a module on "
            f"{', '.join(devices)}; got {device_ids} and {output_device}"
        )


def _check_comm_hook(hook):
    if not callable(hook):
        raise TypeError(
            f"register_comm_hook(): expected a function as hook; got {type(hook).__name__}"
        )
    try:
        bucket = inspect.signature(hook, eval_str=True).parameters.get("bucket")
    except (ValueError, NameError):
        return
    from facula.distributed import GradBucket

    if bucket is None or bucket.annotation in (inspect.Parameter.empty, GradBucket):
        return
    if "GradBucket" not in str(bucket.annotation):
        raise ValueError(
            f"register_comm_hook(): expected a hook whose bucket is a GradBucket; got "
            f"{bucket.annotation}"
        )
