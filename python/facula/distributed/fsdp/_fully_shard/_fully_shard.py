"""fully_shard: parameters, gradients and optimizer state cut over the ranks of a mesh."""

from __future__ import annotations

import functools

import facula
from facula.distributed.fsdp._fully_shard._api import (
    CPUOffloadPolicy,
    MixedPrecisionPolicy,
    OffloadPolicy,
)
from facula.distributed.fsdp._fully_shard._mesh import data_parallel_mesh
from facula.distributed.fsdp._fully_shard._param import ParamPlace
from facula.distributed.fsdp._fully_shard._param_group import FSDPParamGroup
from facula.distributed.fsdp._fully_shard._post_forward import PostForwardParts
from facula.distributed.fsdp._fully_shard._state import FSDPState
from facula.distributed.tensor.placement_types import Shard
from facula.nn import Module

_MODULE = "facula.distributed.fsdp"


def fully_shard(
    module,
    *,
    mesh=None,
    reshard_after_forward=None,
    shard_placement_fn=None,
    mp_policy=MixedPrecisionPolicy(),  # noqa: B008  (it cannot be changed)
    offload_policy=OffloadPolicy(),  # noqa: B008
    ignored_params=None,
    dp_mesh_dims=None,
):
    """Cut the parameters of a module over the ranks of a mesh.

    Each rank keeps a shard of every parameter, as a DTensor. Before the module's forward and
    backward its parameters are gathered, and freed afterwards; gradients are averaged over the
    ranks, each of which gets those of its shards (Rajbhandari et al. 2020, "ZeRO"; Zhao et al.
    2023, "PyTorch FSDP"). A call makes one group of the parameters that no call for a submodule has
    taken: call it for the layers first, then for the model.

    Args:
        module (Module or list of Module): changed in place; its class becomes a subclass of
            FSDPModule.
        mesh (DeviceMesh): of one dimension, or of two: copies, and shards. Default all ranks.
        reshard_after_forward (bool or int): free parameters after forward; default for all but the
            root. An int has that many neighbouring ranks keep them together until backward.
        shard_placement_fn (callable): called with each parameter; returns the Shard that says which
            dimension is cut, or None for dimension 0.
        mp_policy (MixedPrecisionPolicy): dtypes.
        offload_policy (OffloadPolicy): where shards rest.
        ignored_params (set of Parameter): those that are left alone.
        dp_mesh_dims (DataParallelMeshDims): which dimensions of the mesh are used.

    Returns:
        Module: the same

    Raises:
        ValueError: a ModuleList or the like, which has no forward; a mesh of three dimensions.
        AssertionError: the module has been sharded already.

    Example:
        >>> def work(rank):
        ...     model = fully_shard(facula.nn.Linear(3, 4))
        ...     model(facula.ones(2, 3)).sum().backward()
        ...     return model.weight.grad.to_local().shape
        >>> facula.distributed.threads.run(work, 2)[0]
        facula.Size([2, 3])
    """
    modules = tuple(module) if isinstance(module, (list, tuple)) else (module,)
    for each in modules:
        _check_module(each)
    if not isinstance(offload_policy, OffloadPolicy):
        raise TypeError(f"fully_shard(): expected an OffloadPolicy; got {offload_policy!r}")
    dp = data_parallel_mesh(mesh, dp_mesh_dims)
    state = FSDPState(modules, mp_policy, auto_reshard=reshard_after_forward is None)
    state.offload = isinstance(offload_policy, CPUOffloadPolicy)
    params = own_parameters(modules, set(ignored_params or ()))
    if params:
        placement_of = functools.partial(_placement_of, shard_placement_fn)
        name = type(modules[0]).__name__
        state.group = FSDPParamGroup(params, dp, placement_of, mp_policy, name)
        _set_reshard(state.group, reshard_after_forward, dp)
    for each in modules:
        _become_fsdp_module(each, state)
    return module


fully_shard.state = lambda module: vars(module).get("_fsdp_state")


def _check_module(module):
    if not isinstance(module, Module):
        raise ValueError(
            f"fully_shard(): expected a Module or a list of them; got {type(module).__name__}"
        )
    if isinstance(module, (facula.nn.ModuleList, facula.nn.ModuleDict)):
        raise ValueError(
            f"fully_shard(): expected a module that has forward; got {type(module).__name__}"
        )
    if isinstance(module, FSDPModule):
        raise AssertionError(
            f"fully_shard(): expected a module once; got {type(module).__name__} again"
        )


def _placement_of(shard_placement_fn, param):
    placement = shard_placement_fn(param) if shard_placement_fn is not None else None
    if placement is None:
        return Shard(0)
    if not isinstance(placement, Shard):
        raise NotImplementedError(
            f"fully_shard(): expected a Shard or None of shard_placement_fn; got {placement!r}"
        )
    return placement


def _set_reshard(group, reshard_after_forward, dp):
    """Whether and how a group's parameters are freed after forward, from fully_shard's argument."""
    if reshard_after_forward is None or isinstance(reshard_after_forward, bool):
        group.reshard_after_forward = reshard_after_forward is not False
        return
    size = reshard_after_forward
    if not isinstance(size, int):
        raise TypeError(
            f"fully_shard(): expected reshard_after_forward to be a bool or int; got {size!r}"
        )
    if not 1 <= size <= dp.shard_size or dp.shard_size % size:
        raise ValueError(
            "fully_shard(): expected reshard_after_forward to be a bool or to divide the number of "
            f"shards, {dp.shard_size}; got {size}"
        )
    group.reshard_after_forward = size > 1
    if 1 < size < dp.shard_size:
        group.post_forward = PostForwardParts(dp, size)


def own_parameters(modules, ignored):
    """The parameters of modules that are not below another sharded module, with their places."""
    found, seen = {}, set()

    def visit(module):
        if module in seen or "_fsdp_state" in vars(module):
            return
        seen.add(module)
        for name, p in module._parameters.items():
            if p is not None and p not in ignored:
                found.setdefault(p, []).append(ParamPlace(module, name))
        for child in module.children():
            visit(child)

    for module in modules:
        visit(module)
    return found


def _become_fsdp_module(module, state):
    cls = type(module)
    made = _classes.get(cls)
    if made is None:
        made = _classes[cls] = type(
            f"FSDP{cls.__name__}", (FSDPModule, cls), {"__deepcopy__": _no_deepcopy}
        )
    object.__setattr__(module, "_fsdp_state", state)
    module.__class__ = made
    module.register_state_dict_pre_hook(show_shards)
    module._register_load_state_dict_pre_hook(
        lambda *args, **kwargs: show_shards(module), with_module=False
    )
    module.register_load_state_dict_post_hook(read_places)


_classes = {}  # class -> the FSDPModule of it


def _no_deepcopy(self, memo):
    raise AssertionError("deepcopy: expected a module before fully_shard(); got a sharded one")


def show_shards(module, *args):
    """Have a sharded module free its whole parameters: the hook before its state_dict."""
    state = module._fsdp_state
    if state.group is not None:
        state.group.reshard()


def read_places(module, incompatible_keys):
    """Take the parameters that the module has now: the hook after its load_state_dict."""
    state = module._fsdp_state
    for p in state.group.params if state.group is not None else ():
        p.read_places()


class UnshardHandle:
    """Waits for parameters that `FSDPModule.unshard` gathers."""

    def wait(self):
        """Wait until the module has its whole parameters."""


class _GroupUnshardHandle(UnshardHandle):
    def __init__(self, group):
        self._group = group

    def wait(self):
        if self._group is not None:
            self._group.wait_for_unshard()
            self._group = None


class GradientReductionHandle:
    """Waits for gradients that `FSDPModule.finalize_backward` reduces."""

    _state = None

    def wait(self):
        """Wait until the shards have their gradients."""
        if self._state is not None:
            self._state.finalize()
            self._state = None


class FSDPModule:
    """What `fully_shard` makes of a module: its methods steer gathering and reduction."""

    def __new__(cls, *args, **kwargs):
        # A part of a sharded container, such as a slice of a Sequential, is of the class before.
        before = cls.__mro__[2]
        return before(*args, **kwargs)

    def _get_fsdp_state(self):
        return self._fsdp_state

    def _groups(self, recurse=True):
        for module in self.modules() if recurse else [self]:
            if isinstance(module, FSDPModule) and module._fsdp_state.group is not None:
                yield module._fsdp_state.group

    def _set(self, recurse=True, **values):
        for group in self._groups(recurse):
            for name, value in values.items():
                setattr(group, name, value)

    # --- parameters

    def unshard(self, async_op=False):
        """Gather this module's parameters, not those of sharded submodules.

        Args:
            async_op (bool): return at once.

        Returns:
            UnshardHandle if `async_op`, else None
        """
        group = self._fsdp_state.group
        if group is not None:
            group.unshard(async_op)
        handle = _GroupUnshardHandle(group)
        if async_op:
            return handle
        handle.wait()
        return None

    def reshard(self):
        """Free this module's whole parameters: it shows its shards."""
        show_shards(self)

    def _apply(self, fn, recurse=True):
        self.reshard()
        super()._apply(fn, recurse)
        read_places(self, None)
        return self

    def set_reshard_after_forward(self, reshard_after_forward, recurse=True):
        """Whether parameters are freed after forward.

        Args:
            reshard_after_forward (bool): True saves memory, False a gathering in backward.
            recurse (bool): for sharded submodules, too.
        """
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(
                "set_reshard_after_forward(): expected a bool; "
                f"got {type(reshard_after_forward).__name__}"
            )
        for module in self.modules() if recurse else [self]:
            if isinstance(module, FSDPModule):
                module._fsdp_state.auto_reshard = False
        self._set(recurse, reshard_after_forward=reshard_after_forward, post_forward=None)

    def set_reshard_after_backward(self, reshard_after_backward, *, recurse=True):
        """Whether parameters are freed after backward.

        Args:
            reshard_after_backward (bool): False spares the gathering of the next pass, where
                several come before a step of the optimizer.
            recurse (bool): for sharded submodules, too.
        """
        self._set(recurse, reshard_after_backward=reshard_after_backward)

    def set_modules_to_forward_prefetch(self, modules):
        """Begin to gather these modules' parameters in this one's forward.

        Args:
            modules (list of FSDPModule): in the order of forward.
        """
        _check_fsdp_modules("set_modules_to_forward_prefetch", modules)
        self._fsdp_state.forward_prefetch = [m._fsdp_state for m in modules]

    def set_modules_to_backward_prefetch(self, modules):
        """Begin to gather these modules' parameters in this one's backward.

        Args:
            modules (list of FSDPModule): in the order of backward; by default the one whose forward
                was before this one's.
        """
        _check_fsdp_modules("set_modules_to_backward_prefetch", modules)
        self._fsdp_state.backward_prefetch = [m._fsdp_state for m in modules]

    def set_unshard_in_backward(self, unshard_in_backward):
        """Whether backward gathers this module's parameters: not where it does not need them."""
        self._fsdp_state.unshard_in_backward = unshard_in_backward

    def set_keep_unsharded_storage(self, keep, *, recurse=True):
        """Whether the storage of whole parameters stays allocated while shards are shown.

        Args:
            keep (bool): True spares the allocation of the next gathering.
            recurse (bool): for sharded submodules, too.
        """
        for group in self._groups(recurse):
            for p in group.params:
                p.keep_storage = keep
                if not p.is_unsharded:
                    p.free()

    def _set_unshard_async_op(self, async_op):
        self._set(unshard_async=async_op)

    # --- gradients

    def set_requires_gradient_sync(self, requires_gradient_sync, *, recurse=True):
        """Whether backward reduces gradients: False to accumulate over several passes.

        Args:
            requires_gradient_sync (bool): whether.
            recurse (bool): for sharded submodules, too.
        """
        self._set(
            recurse,
            reduce_grads=requires_gradient_sync,
            all_reduce_grads=requires_gradient_sync,
        )

    def set_requires_all_reduce(self, requires_all_reduce, *, recurse=True):
        """Whether backward adds gradients up over copies of shards, on meshes of two dimensions."""
        self._set(recurse, all_reduce_grads=requires_all_reduce)

    def set_is_last_backward(self, is_last_backward):
        """Whether the next backward pass is the last one before a step of the optimizer."""
        state = self._fsdp_state
        state.make_root()
        state.context.is_last_backward = is_last_backward

    def set_manual_backward_finalization(self, enabled):
        """Have `finalize_backward` wait for reductions, in place of the end of backward."""
        state = self._fsdp_state
        state.make_root()
        state.context.manual_finalization = enabled

    def finalize_backward(self, *, async_op=False):
        """Wait for the reductions of a pass, after `set_manual_backward_finalization(True)`.

        Args:
            async_op (bool): return a handle that waits.

        Returns:
            GradientReductionHandle if `async_op`, else None
        """
        handle = GradientReductionHandle()
        handle._state = self._fsdp_state
        self._fsdp_state.make_root()
        if async_op:
            return handle
        handle.wait()
        return None

    def reset_iter_state(self):
        """Forget a pass that was not ended: parameters are freed, gradients of it dropped."""
        state = self._fsdp_state
        state.make_root()
        state.abandon_pass()

    def set_gradient_divide_factor(self, factor):
        """Divide sums of gradients by this in place of the number of ranks.

        Args:
            factor (float): above 0.
        """
        self._set(False, divide_factor=factor)

    def set_reduce_scatter_divide_factor(self, factor):
        """The name of old of `set_gradient_divide_factor`."""
        self.set_gradient_divide_factor(factor)

    def set_force_sum_reduction_for_comms(self, enable):
        """No effect: gradients are always added up first, and divided then."""

    def set_all_reduce_hook(self, hook, *, stream=None):
        """Call a function with each averaged gradient before it is added to a shard's.

        Args:
            hook (callable): takes a flat tensor, and changes it in place.
            stream: has no effect on the CPU.
        """
        self._set(False, all_reduce_hook=hook)

    def set_reduce_scatter_max_input_buffers(self, max_input_buffers, *, recurse=True):
        """How many reductions may be under way at once.

        Args:
            max_input_buffers (int): above 0; each takes the memory of a group's gradients.
            recurse (bool): for sharded submodules, too.
        """
        if max_input_buffers < 1:
            raise ValueError(
                "set_reduce_scatter_max_input_buffers(): expected a number above 0; "
                f"got {max_input_buffers}"
            )
        self._set(recurse, max_reductions=max_input_buffers)

    def set_reduce_scatter_unused_params(self, reduce_scatter_unused_params, *, recurse=True):
        """Reduce zeros for parameters that a pass of this rank has not used.

        Args:
            reduce_scatter_unused_params (bool): needed where ranks use different parameters.
            recurse (bool): for sharded submodules, too.
        """
        self._set(recurse, reduce_unused=reduce_scatter_unused_params)

    def set_separate_reduce_scatter_group(self, enable=True, *, recurse=True):
        """No effect: collectives of this version run in the order of their calls."""

    # --- communication

    def set_custom_all_gather(self, comm):
        """Gather parameters by a function.

        Args:
            comm (callable): takes output_tensor, input_tensor, group and async_op; returns a Work
                or None.
        """
        self._set(False, gather=comm)

    def set_custom_reduce_scatter(self, comm):
        """Reduce gradients by a function.

        Args:
            comm (callable): takes output_tensor, input_tensor, group, op and async_op; returns a
                Work or None.
        """
        self._set(False, reduce_scatter=comm)

    def set_allocate_memory_from_process_group_for_comm(self, enable):
        """No effect on the CPU, where any memory does."""

    def set_symm_mem_for_comm(self, backend="NCCL"):
        """Refused: this is of NCCL.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            f"set_symm_mem_for_comm(): expected a group over {backend}; got one on the CPU"
        )

    def set_post_optim_event(self, event):
        """No effect on the CPU, where there are no streams to wait for."""


def _check_fsdp_modules(op, modules):
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"{op}(): expected FSDPModules; got {type(module).__name__}")


def register_fsdp_forward_method(module, method_name):
    """Have a method of a sharded module gather parameters as forward does.

    Args:
        module (Module): if it is not sharded nothing happens.
        method_name (str): the method.

    Raises:
        ValueError: there is no such method.

    Example:
        >>> register_fsdp_forward_method(facula.nn.Linear(1, 1), "forward")
    """
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(
            f"register_fsdp_forward_method(): expected a method of {type(module).__name__}; "
            f"got {method_name!r}"
        )
    method = getattr(type(module), method_name)

    @functools.wraps(method)
    def wrapped(self, *args, **kwargs):
        state = self._fsdp_state
        args, kwargs = state._pre_forward(self, args, kwargs)
        return state._post_forward(self, args, method(self, *args, **kwargs))

    object.__setattr__(module, method_name, wrapped.__get__(module, type(module)))


def share_comm_ctx(modules):
    """Let several roots wait for each other's reductions.

    Args:
        modules (list of FSDPModule): roots, before their first forward.
    """
    _check_fsdp_modules("share_comm_ctx", modules)
    if not modules:
        return
    for module in modules:
        module._fsdp_state.make_root()
    shared = modules[0]._fsdp_state.context.comm
    for module in modules[1:]:
        context = module._fsdp_state.context
        context.comm = shared
        for state in context.states:
            if state.group is not None:
                state.group.context = shared


for _each in (
    fully_shard,
    FSDPModule,
    UnshardHandle,
    GradientReductionHandle,
    register_fsdp_forward_method,
    share_comm_ctx,
):
    _each.__module__ = _MODULE
