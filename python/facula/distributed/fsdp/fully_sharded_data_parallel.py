"""FullyShardedDataParallel: a module that wraps another one, whose parameters lie in shards."""

from __future__ import annotations

import contextlib
import copy
import os
from enum import Enum, auto

import facula
import facula.distributed as dist
from facula.distributed.device_mesh import DeviceMesh
from facula.distributed.fsdp import _optim_state, _state_dict
from facula.distributed.fsdp._fully_shard._api import MixedPrecisionPolicy
from facula.distributed.fsdp._fully_shard._fully_shard import (
    own_parameters,
    read_places,
    show_shards,
)
from facula.distributed.fsdp._fully_shard._mesh import DataParallelMesh, data_parallel_mesh
from facula.distributed.fsdp._fully_shard._param_group import FSDPParamGroup
from facula.distributed.fsdp._fully_shard._state import FSDPState, TrainingState
from facula.distributed.fsdp._summon import summoned
from facula.distributed.fsdp.api import *  # noqa: F403  (PyTorch has them here, too)
from facula.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    MixedPrecision,
    ShardedOptimStateDictConfig,
    ShardingStrategy,
    StateDictType,
)
from facula.distributed.fsdp.wrap import _auto_wrap
from facula.distributed.tensor.placement_types import Shard
from facula.nn import Module, Parameter

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]

_MODULE = "facula.distributed.fsdp"
FSDP_WRAPPED_MODULE = "_fsdp_wrapped_module"
FSDP_PREFIX = FSDP_WRAPPED_MODULE + "."


class OptimStateKeyType(Enum):
    """What the keys of an optimizer's state are: names of parameters, or their numbers."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


class FlatParameter(Parameter):
    """A parameter of several in one. This version cuts parameters one by one and makes none."""


_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
_WHOLE_BETWEEN_PASSES = (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)


class FullyShardedDataParallel(Module):
    """A module whose parameters, gradients and optimizer state are cut over the ranks.

    Parameters are DTensors, one for each of the wrapped module's, with the same names, whatever
    `use_orig_params`; before forward and backward they are gathered (Zhao et al. 2023, "PyTorch
    FSDP"). `facula.distributed.fsdp.fully_shard` does the same without a wrapper.

    Args:
        module (Module): changed in place.
        process_group (ProcessGroup, or tuple of two): the ranks; for hybrid strategies those that
            have the other shards, and those that have copies.
        sharding_strategy (ShardingStrategy): what is cut; default FULL_SHARD.
        cpu_offload (CPUOffload): whether shards lie in the CPU's memory, as they do here anyway.
        auto_wrap_policy (callable): which submodules are wrapped first; see `wrap`.
        backward_prefetch (BackwardPrefetch): when backward gathers the parameters that it needs
            next; None for not before it needs them.
        mixed_precision (MixedPrecision): dtypes.
        ignored_modules (iterable of Module): left alone.
        param_init_fn (callable): called with a module on the meta device, to give it data.
        device_id: the device to move the module to; only the CPU.
        sync_module_states (bool): take parameters and buffers of rank 0.
        forward_prefetch (bool): gather the parameters of the next module in forward.
        limit_all_gathers (bool): no effect on the CPU.
        use_orig_params (bool): no effect: parameters are always those of the module.
        ignored_states (iterable): parameters or modules that are left alone.
        device_mesh (DeviceMesh): in place of `process_group`; of two dimensions for hybrids.

    Example:
        >>> def work(rank):
        ...     model = FullyShardedDataParallel(facula.nn.Linear(3, 4))
        ...     model(facula.ones(2, 3)).sum().backward()
        ...     return list(model.state_dict()), model.weight.grad.to_local().shape
        >>> facula.distributed.threads.run(work, 2)[0]
        (['weight', 'bias'], facula.Size([2, 3]))
    """

    def __init__(
        self,
        module,
        process_group=None,
        sharding_strategy=None,
        cpu_offload=None,
        auto_wrap_policy=None,
        backward_prefetch=BackwardPrefetch.BACKWARD_PRE,
        mixed_precision=None,
        ignored_modules=None,
        param_init_fn=None,
        device_id=None,
        sync_module_states=False,
        forward_prefetch=False,
        limit_all_gathers=True,
        use_orig_params=False,
        ignored_states=None,
        device_mesh=None,
    ):
        super().__init__()
        _check_arguments(module, device_id, process_group, device_mesh, mixed_precision)
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        dp = _mesh_of(strategy, process_group, device_mesh)
        modules, params = _ignored(module, ignored_modules, ignored_states)
        _materialize(module, param_init_fn, modules)
        if sync_module_states:
            _take_states_of_first_rank(module, dp, params)
        mixed_precision = mixed_precision or MixedPrecision()
        if auto_wrap_policy is not None:
            kwargs = {
                "process_group": process_group,
                "sharding_strategy": strategy,
                "cpu_offload": cpu_offload,
                "backward_prefetch": backward_prefetch,
                "mixed_precision": mixed_precision,
                "forward_prefetch": forward_prefetch,
                "use_orig_params": use_orig_params,
                "ignored_states": params,
                "device_mesh": dp.mesh,
            }
            if device_mesh is None:
                del kwargs["device_mesh"]
            _auto_wrap(module, auto_wrap_policy, modules, params, type(self), kwargs)
        self._fsdp_wrapped_module = module
        self.process_group = dp.shard_group or dp.replicate_group
        self.sharding_strategy, self.mixed_precision = strategy, mixed_precision
        self.cpu_offload = cpu_offload or CPUOffload()
        self.backward_prefetch, self.forward_prefetch = backward_prefetch, forward_prefetch
        self.limit_all_gathers, self._use_orig_params = limit_all_gathers, use_orig_params
        self._state_dict_settings = _state_dict.default_settings()
        object.__setattr__(self, "_fsdp_state", self._new_state(dp, params))
        _state_dict.register(self)

    def _new_state(self, dp, ignored):
        mp = self.mixed_precision
        skipped = _prepare_for_dtypes(self._fsdp_wrapped_module, mp)
        policy = MixedPrecisionPolicy(
            mp.param_dtype,
            mp.reduce_dtype,
            cast_forward_inputs=mp.cast_forward_inputs,
            param_dtype_override_fn=lambda p: p.dtype if p in skipped else None,
        )
        params = own_parameters((self._fsdp_wrapped_module,), ignored)
        between = self.sharding_strategy in _WHOLE_BETWEEN_PASSES
        state = _WrapperState((self,), policy, auto_reshard=not between)
        state.cast_root_inputs = mp.cast_root_forward_inputs
        if self.backward_prefetch is not BackwardPrefetch.BACKWARD_PRE:
            is_late = self.backward_prefetch is BackwardPrefetch.BACKWARD_POST
            state.prefetch_at = TrainingState.POST_BACKWARD if is_late else None
        if params:
            name = type(self._fsdp_wrapped_module).__name__
            state.group = FSDPParamGroup(params, dp, lambda p: Shard(0), policy, name)
            state.group.reshard_after_forward = not between
        state.prefetch_next = self.forward_prefetch
        return state

    @property
    def module(self):
        """The wrapped module; what it wraps, if it is a checkpoint of one."""
        inner = self._fsdp_wrapped_module
        return getattr(inner, "_checkpoint_wrapped_module", inner)

    @property
    def _has_params(self):
        return self._fsdp_state.group is not None

    @property
    def _flat_param(self):
        return None

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(FSDP_WRAPPED_MODULE), name)

    def __getitem__(self, key):
        return self.module[key]

    def forward(self, *args, **kwargs):
        """The wrapped module's."""
        return self._fsdp_wrapped_module(*args, **kwargs)

    def _apply(self, fn, recurse=True):
        show_shards(self)
        super()._apply(fn, recurse)
        read_places(self, None)
        return self

    def named_parameters(self, *args, **kwargs):
        """Parameters with the names that they have without wrappers."""
        for name, p in super().named_parameters(*args, **kwargs):
            yield name.replace(FSDP_PREFIX, ""), p

    def named_buffers(self, *args, **kwargs):
        """Buffers with the names that they have without wrappers."""
        for name, b in super().named_buffers(*args, **kwargs):
            yield name.replace(FSDP_PREFIX, ""), b

    def apply(self, fn):
        """Call a function with each submodule, whose parameters are whole meanwhile.

        Args:
            fn (callable): takes a module; changes of parameters are kept.

        Returns:
            FullyShardedDataParallel: self
        """
        with self.summon_full_params(self, recurse=False):
            return super().apply(fn)

    def check_is_root(self):
        """Whether this is the outermost of the modules whose forward runs."""
        self._fsdp_state.make_root()
        return self._fsdp_state.is_root

    @staticmethod
    def fsdp_modules(module, root_only=False):
        """The FullyShardedDataParallel modules in a module.

        Args:
            module (Module): may be one itself.
            root_only (bool): only those that are not within another.

        Returns:
            list
        """
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        if not root_only:
            return found
        inner = {n for m in found for n in m.modules() if n is not m}
        return [m for m in found if m not in inner]

    # --- gradients

    @contextlib.contextmanager
    def no_sync(self):
        """Context manager: backward leaves gradients unreduced, for the next pass to add to.

        Raises:
            RuntimeError: this is not the outermost.

        Example:
            >>> def work(rank):
            ...     model = FullyShardedDataParallel(facula.nn.Linear(1, 2))
            ...     with model.no_sync():
            ...         model(facula.ones(1, 1)).sum().backward()
            ...     return model.weight.grad
            >>> facula.distributed.threads.run(work, 2)
            [None, None]
        """
        if not self.check_is_root():
            raise RuntimeError("no_sync(): expected the outermost FSDP module; got one within it")
        groups = [m._fsdp_state.group for m in self.fsdp_modules(self) if m._has_params]
        before = [g.reduce_grads for g in groups]
        for group in groups:
            group.reduce_grads = False
        try:
            yield
        finally:
            for group, value in zip(groups, before, strict=True):
                group.reduce_grads = value

    @facula.no_grad()
    def clip_grad_norm_(self, max_norm, norm_type=2.0):
        """Scale gradients down so that the norm of all of them is at most `max_norm`.

        Args:
            max_norm (float): the limit.
            norm_type (float): the kind of norm; inf for the largest element.

        Returns:
            Tensor: the norm before, the same at all ranks

        Raises:
            RuntimeError: this is not the outermost.
        """
        if not self.check_is_root():
            raise RuntimeError(
                "clip_grad_norm_(): expected the outermost FSDP module; got one within it"
            )
        return _clip_grad_norm(self, float(max_norm), float(norm_type))

    def register_comm_hook(self, state, hook):
        """Have a function communicate gradients.

        Args:
            state: the function's first argument.
            hook (callable): takes (state, gradient, shard) and fills the shard with this rank's
                part of the average; for NO_SHARD (state, gradient), and averages in place.
        """
        if not self.check_is_root():
            raise AssertionError(
                "register_comm_hook(): expected the outermost FSDP module; got one within it"
            )
        for module in self.fsdp_modules(self):
            group = module._fsdp_state.group
            if group is not None:
                group.divide_factor = 1
                group.set_comm_hook(state, hook)

    # --- whole parameters

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module,
        recurse=True,
        writeback=True,
        rank0_only=False,
        offload_to_cpu=False,
        with_grads=False,
    ):
        """Context manager: parameters are whole, in their own dtype.

        Args:
            module (Module): has FullyShardedDataParallel modules.
            recurse (bool): for those within others, too.
            writeback (bool): keep changes; each rank those of its shard.
            rank0_only (bool): only at rank 0; without `writeback`.
            offload_to_cpu (bool): in the CPU's memory, where they are anyway.
            with_grads (bool): gradients, too.

        Raises:
            NotImplementedError: both `writeback` and `rank0_only`.

        Example:
            >>> def work(rank):
            ...     model = FullyShardedDataParallel(facula.nn.Linear(1, 3))
            ...     with FullyShardedDataParallel.summon_full_params(model):
            ...         return model.weight.shape, type(model.weight).__name__
            >>> facula.distributed.threads.run(work, 2)[0]
            (facula.Size([3, 1]), 'Parameter')
        """
        if writeback and rank0_only:
            raise NotImplementedError(
                "summon_full_params(): expected writeback or rank0_only; got both"
            )
        wrappers = FullyShardedDataParallel.fsdp_modules(module, root_only=not recurse)
        groups = [m._fsdp_state.group for m in wrappers if m._has_params]
        with summoned(groups, writeback, rank0_only, with_grads):
            yield

    # --- state dicts

    @staticmethod
    def set_state_dict_type(
        module, state_dict_type, state_dict_config=None, optim_state_dict_config=None
    ):
        """Choose what `state_dict` and `optim_state_dict` give.

        Args:
            module (Module): has FullyShardedDataParallel modules.
            state_dict_type (StateDictType): whole tensors, spread ones, or this rank's parts.
            state_dict_config (StateDictConfig): how, for the module.
            optim_state_dict_config (OptimStateDictConfig): how, for the optimizer.

        Returns:
            StateDictSettings: those before
        """
        new = _state_dict.settings(state_dict_type, state_dict_config, optim_state_dict_config)
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for each in FullyShardedDataParallel.fsdp_modules(module):
            each._state_dict_settings = copy.copy(new)
        return before

    @staticmethod
    def get_state_dict_type(module):
        """The StateDictSettings of the FullyShardedDataParallel modules in a module."""
        found = None
        for each in FullyShardedDataParallel.fsdp_modules(module):
            if found is not None and found != each._state_dict_settings:
                raise AssertionError(
                    f"get_state_dict_type(): expected the same everywhere; got {found} and "
                    f"{each._state_dict_settings}"
                )
            found = each._state_dict_settings
        return found or _state_dict.default_settings()

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module, state_dict_type, state_dict_config=None, optim_state_dict_config=None
    ):
        """Context manager: `set_state_dict_type` for a while."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            FullyShardedDataParallel.set_state_dict_type(
                module,
                before.state_dict_type,
                before.state_dict_config,
                before.optim_state_dict_config,
            )

    @staticmethod
    def optim_state_dict(model, optim, optim_state_dict=None, group=None):
        """The state of an optimizer, by names of parameters.

        Args:
            model (Module): whose parameters the optimizer has.
            optim (Optimizer): the optimizer.
            optim_state_dict (dict): its state, if it is not to be asked for it.
            group (ProcessGroup): no effect.

        Returns:
            dict: as the state dict type says
        """
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        return _optim_state.state_dict(
            model,
            optim,
            optim_state_dict,
            settings.state_dict_type,
            settings.optim_state_dict_config,
        )

    @staticmethod
    def optim_state_dict_to_load(
        model, optim, optim_state_dict, is_named_optimizer=False, load_directly=False, group=None
    ):
        """What `optim.load_state_dict` takes, of a result of `optim_state_dict`.

        Args:
            model (Module): whose parameters the optimizer has.
            optim (Optimizer): the optimizer.
            optim_state_dict (dict): by names of parameters.
            is_named_optimizer (bool): keep names as keys.
            load_directly (bool): load it, too.
            group (ProcessGroup): no effect.

        Returns:
            dict
        """
        made = _optim_state.to_load(model, optim, optim_state_dict, is_named_optimizer)
        if load_directly:
            optim.load_state_dict(made)
        return made

    @staticmethod
    def full_optim_state_dict(model, optim, optim_input=None, rank0_only=True, group=None):
        """The state of an optimizer as whole tensors, by names of parameters."""
        config = FullOptimStateDictConfig(rank0_only=rank0_only)
        return _optim_state.state_dict(model, optim, None, StateDictType.FULL_STATE_DICT, config)

    @staticmethod
    def sharded_optim_state_dict(model, optim, group=None):
        """The state of an optimizer as DTensors, by names of parameters."""
        config = ShardedOptimStateDictConfig(offload_to_cpu=False)
        return _optim_state.state_dict(model, optim, None, StateDictType.SHARDED_STATE_DICT, config)

    @staticmethod
    def shard_full_optim_state_dict(full_optim_state_dict, model, optim_input=None, optim=None):
        """This rank's part of a result of `full_optim_state_dict`, for `optim.load_state_dict`."""
        return _optim_state.to_load(model, optim, full_optim_state_dict)

    @staticmethod
    def scatter_full_optim_state_dict(
        full_optim_state_dict, model, optim_input=None, optim=None, group=None
    ):
        """`shard_full_optim_state_dict` of what rank 0 has; the others give None."""
        box = [full_optim_state_dict if dist.get_rank(group) == 0 else None]
        dist.broadcast_object_list(box, group=group, group_src=0)
        return _optim_state.to_load(model, optim, box[0])

    @staticmethod
    def flatten_sharded_optim_state_dict(sharded_optim_state_dict, model, optim):
        """What `optim.load_state_dict` takes, of a result of `sharded_optim_state_dict`."""
        return _optim_state.to_load(model, optim, sharded_optim_state_dict)

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict, optim_state_key_type, model, optim_input=None, optim=None
    ):
        """An optimizer's state with other keys: names of parameters, or their numbers.

        Args:
            optim_state_dict (dict): with the other keys.
            optim_state_key_type (OptimStateKeyType): the keys that are wanted.
            model (Module): whose parameters the optimizer has; not wrapped.
            optim_input: the parameters, as the optimizer got them; default all of the model.
            optim (Optimizer): in its place.

        Returns:
            dict
        """
        by_name = optim_state_key_type is OptimStateKeyType.PARAM_NAME
        return _optim_state.rekeyed(optim_state_dict, by_name, model, optim_input, optim)


class _WrapperState(FSDPState):
    """The hooks of a wrapper: casts inputs and gathers ahead as its arguments say."""

    cast_root_inputs = True
    prefetch_next = False

    def make_root(self):
        if self.is_root is not None:
            return
        super().make_root()
        states = self.context.states
        for state, following in zip(states, states[1:], strict=False):
            if getattr(state, "prefetch_next", False):
                state.forward_prefetch = [following]

    def _cast_inputs(self, args, kwargs):
        if self.is_root and not self.cast_root_inputs:
            return args, kwargs
        return super()._cast_inputs(args, kwargs, always=self.is_root)


# --- arguments


def _check_arguments(module, device_id, process_group, device_mesh, mixed_precision):
    if not isinstance(module, Module):
        raise TypeError(
            f"FullyShardedDataParallel(): expected a Module; got {type(module).__name__}"
        )
    if isinstance(module, FullyShardedDataParallel):
        raise ValueError("FullyShardedDataParallel(): expected a module; got a wrapped one")
    if process_group is not None and device_mesh is not None:
        raise ValueError(
            "FullyShardedDataParallel(): expected process_group or device_mesh; got both"
        )
    if device_id is not None and facula.device(device_id).type != "cpu":
        raise NotImplementedError(
            f"FullyShardedDataParallel(): expected device_id of the CPU; got {device_id}"
        )
    if mixed_precision is not None and mixed_precision.keep_low_precision_grads:
        raise NotImplementedError(
            "FullyShardedDataParallel(): expected keep_low_precision_grads=False; got True"
        )


def _mesh_of(strategy, process_group, device_mesh):
    if strategy in _HYBRID:
        if device_mesh is None:
            device_mesh = _hybrid_mesh(process_group)
        if device_mesh.ndim != 2:
            raise ValueError(
                f"FullyShardedDataParallel(): expected a mesh of copies and shards; "
                f"got {device_mesh}"
            )
        return DataParallelMesh(device_mesh, 1, 0)
    if device_mesh is None and process_group is not None:
        device_mesh = DeviceMesh.from_group(process_group, "cpu")
    dp = data_parallel_mesh(device_mesh)
    if dp.mesh.ndim != 1:
        raise ValueError(
            f"FullyShardedDataParallel(): expected a mesh of one dimension for {strategy}; "
            f"got {dp.mesh}"
        )
    return DataParallelMesh(dp.mesh, None, 0) if strategy is ShardingStrategy.NO_SHARD else dp


def _hybrid_mesh(process_group):
    """A mesh of (copies, shards): of two groups, or with the ranks of a machine for shards."""
    if process_group is None:
        world = dist.get_world_size()
        local = int(os.environ.get("LOCAL_WORLD_SIZE", world))
        return DeviceMesh("cpu", facula.arange(world).view(-1, local))
    if not isinstance(process_group, tuple) or len(process_group) != 2:
        raise ValueError(
            "FullyShardedDataParallel(): expected a tuple of two process groups for a hybrid "
            f"strategy; got {process_group!r}"
        )
    shards, copies = process_group
    rows = [None] * dist.get_world_size(copies)
    dist.all_gather_object(rows, dist.get_process_group_ranks(shards), group=copies)
    return DeviceMesh.from_group([copies, shards], "cpu", facula.tensor(rows))


def _ignored(module, ignored_modules, ignored_states):
    """(modules, parameters) that are left alone."""
    if ignored_modules is not None and ignored_states is not None:
        raise ValueError(
            "FullyShardedDataParallel(): expected ignored_modules or ignored_states; got both"
        )
    given = list(ignored_modules or ignored_states or ())
    modules = {m for each in given if isinstance(each, Module) for m in each.modules()}
    params = {p for p in given if isinstance(p, Parameter)}
    return modules, params | {p for m in modules for p in m._parameters.values() if p is not None}


def _materialize(module, param_init_fn, ignored):
    """Give data to modules that are on the meta device."""
    for part in module.modules():
        tensors = [*part._parameters.values(), *part._buffers.values()]
        if part in ignored or not any(t is not None and t.is_meta for t in tensors):
            continue
        if param_init_fn is not None:
            param_init_fn(part)
            continue
        part.to_empty(device="cpu", recurse=False)
        if not hasattr(part, "reset_parameters"):
            raise ValueError(
                f"FullyShardedDataParallel(): expected param_init_fn, or reset_parameters() of "
                f"{type(part).__name__}, for parameters on the meta device; got neither"
            )
        with facula.no_grad():
            part.reset_parameters()


def _take_states_of_first_rank(module, dp, ignored):
    tensors = [p for p in module.parameters() if p not in ignored] + list(module.buffers())
    for group in (dp.shard_group, dp.replicate_group):
        if group is None:
            continue
        for t in tensors:
            if not hasattr(t, "_spec"):
                dist.broadcast(t.data, group=group, group_src=0)


def _prepare_for_dtypes(module, mp):
    """Cast buffers, and have some kinds of modules compute in their own dtype.

    Returns:
        set: the parameters of the latter
    """
    skipped = set()
    if mp.param_dtype is None and mp.buffer_dtype is None:
        return skipped
    for part in module.modules():
        if isinstance(part, tuple(mp._module_classes_to_ignore)):
            skipped.update(part.parameters(recurse=False))
            if mp.param_dtype is not None and "_fsdp_own_dtype" not in vars(part):
                object.__setattr__(part, "_fsdp_own_dtype", True)
                part.register_forward_pre_hook(_cast_up)
                part.register_forward_hook(_cast_back(mp.param_dtype))
            continue
        for name, buffer in part._buffers.items():
            if buffer is not None and mp.buffer_dtype is not None and buffer.is_floating_point():
                part._buffers[name] = buffer.to(mp.buffer_dtype)
    return skipped


def _cast_up(module, args):
    return tuple(
        a.float() if isinstance(a, facula.Tensor) and a.is_floating_point() else a for a in args
    )


def _cast_back(dtype):
    return lambda module, args, output: output.to(dtype)


# --- gradients


def _clip_grad_norm(root, max_norm, norm_type):
    """Powers of the norms of all gradients, each counted once, and scaled gradients."""
    power = 1.0 if norm_type == float("inf") else norm_type
    in_groups, own, pending = set(), [], {}
    for wrapper in root.fsdp_modules(root):
        group = wrapper._fsdp_state.group
        for p in group.params if group is not None else ():
            in_groups.add(p.sharded_param)
            if p.sharded_param.grad is not None:
                local = p.sharded_param.grad._local_tensor
                pending.setdefault(group.dp.shard_group, []).append(local)
    for p in root.parameters():
        if p not in in_groups and p.grad is not None:
            own.append(p.grad)
    groups = {
        w._fsdp_state.group.dp.shard_group: None for w in root.fsdp_modules(root) if w._has_params
    }
    total = _power_of_norm(own, norm_type, power)
    for group in groups:
        part = _power_of_norm(pending.get(group, []), norm_type, power)
        if group is not None:
            is_largest = norm_type == float("inf")
            op = dist.ReduceOp.MAX if is_largest else dist.ReduceOp.SUM
            dist.all_reduce(part, op=op, group=group)
        total = facula.maximum(total, part) if norm_type == float("inf") else total + part
    norm = total if norm_type == float("inf") else total ** (1.0 / power)
    factor = facula.clamp(max_norm / (norm + 1e-6), max=1.0)
    for grad in [*own, *(g for some in pending.values() for g in some)]:
        grad.mul_(factor.to(grad.dtype))
    return norm


def _power_of_norm(grads, norm_type, power):
    norms = [facula.linalg.vector_norm(g.float(), norm_type) for g in grads if g.numel()]
    if not norms:
        return facula.zeros(())
    stacked = facula.stack(norms)
    return stacked.max() if norm_type == float("inf") else (stacked**power).sum()


for _each in (FullyShardedDataParallel, OptimStateKeyType):
    _each.__module__ = _MODULE + ".fully_sharded_data_parallel"
