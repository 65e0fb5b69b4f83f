"""What happens around forward and backward of a module that is sharded."""

from __future__ import annotations

import functools
from enum import Enum, auto

import facula
from facula.distributed.fsdp._fully_shard._param_group import CommContext
from facula.utils._pytree import tree_flatten, tree_map, tree_unflatten


class TrainingState(Enum):
    """Where a pass is."""

    IDLE = auto()
    FORWARD = auto()
    PRE_BACKWARD = auto()
    POST_BACKWARD = auto()


class RootContext:
    """What the states of a model share.

    Attributes:
        states (list of FSDPState): the root's first.
        comm (CommContext): collectives that are under way.
        is_last_backward (bool): whether the passes that are to come belong to another step.
        callback_queued (bool): whether the end of the backward pass is awaited.
    """

    def __init__(self):
        self.states = []
        self.comm = CommContext()
        self.is_last_backward = True
        self.callback_queued = False
        self.manual_finalization = False


class FSDPState:
    """The hooks of one call of `fully_shard`.

    Args:
        modules (tuple of Module): those of the call; mostly one.
        policy (MixedPrecisionPolicy): dtypes.
        auto_reshard (bool): parameters of the root stay whole between forward and backward.
    """

    def __init__(self, modules, policy, auto_reshard):
        self.modules, self.policy, self.auto_reshard = modules, policy, auto_reshard
        self.group = None
        self.context = None
        self.is_root = None
        self.training = TrainingState.IDLE
        self.forward_prefetch, self.backward_prefetch = [], []
        self.unshard_in_backward = True
        self.finds_shapes = False  # forward runs on tensors without memory, parameters included
        self.prefetch_at = TrainingState.PRE_BACKWARD  # when backward gathers the group before
        self._entered = set()
        for module in modules:
            module.register_forward_pre_hook(self._pre_forward, prepend=True, with_kwargs=True)
            module.register_forward_hook(self._post_forward)
            module.register_forward_hook(self._after_error, always_call=True)

    # --- the root

    def make_root(self):
        """Make this the root of the sharded modules below, if no forward has been yet."""
        if self.is_root is not None:
            return
        self.context = RootContext()
        self.is_root = True
        seen = set()
        for module in self.modules:
            for name, part in module.named_modules():
                state = getattr(part, "_fsdp_state", None)
                if state is None or id(state) in seen:
                    continue
                seen.add(id(state))
                if state is not self and state.is_root:
                    raise RuntimeError(
                        f"fully_shard(): expected the first forward of the whole model; "
                        f"{name} has run before, without it"
                    )
                self._adopt(state, name)
        if self.auto_reshard and self.group is not None:
            self.group.reshard_after_forward = False
        self._name_parameters()
        self._check_devices()

    def _adopt(self, state, name):
        state.context = self.context
        state.is_root = state is self
        self.context.states.append(state)
        if state.group is not None:
            state.group.context = self.context.comm
            state.group.name = name

    def _name_parameters(self):
        names = {}
        for module in self.modules:
            for name, p in module.named_parameters(remove_duplicate=False):
                names.setdefault(id(p), name)
        for state in self.context.states:
            for p in state.group.params if state.group else ():
                p.fqn = names.get(id(p.sharded_param))

    def _check_devices(self):
        for state in self.context.states:
            for p in state.group.params if state.group else ():
                p.read_places()
                if p.sharded_param.device.type == "meta" and not p.dp.simulates:
                    raise RuntimeError(
                        f"fully_shard(): expected parameters with data; {p.fqn} is on the meta "
                        "device: call to_empty() and initialize it first"
                    )

    # --- forward

    def _pre_forward(self, module, args, kwargs):
        if self.finds_shapes:
            return self._cast_inputs(args, kwargs)
        # A checkpoint computes forward again, with parameters that backward has gathered.
        if self.training is TrainingState.PRE_BACKWARD:
            return args, kwargs
        if id(module) in self._entered:
            self._entered.clear()  # an error has ended the forward before
        first = not self._entered
        self._entered.add(id(module))
        if not first:
            return args, kwargs
        self.make_root()
        if self.is_root and facula.is_grad_enabled():
            self.context.comm.post_forward_order.clear()
        self.training = TrainingState.FORWARD
        args, kwargs = self._cast_inputs(args, kwargs)
        if self.group is None:
            return args, kwargs
        self.group.unshard(self.group.unshard_async)
        self.group.wait_for_unshard()
        for state in self.forward_prefetch:
            if state.group is not None:
                state.group.unshard(async_op=True)
        return self._notice_backward(args, kwargs)

    def _cast_inputs(self, args, kwargs, always=False):
        dtype = self.policy.param_dtype
        if dtype is None or not (always or self.policy.cast_forward_inputs):
            return args, kwargs
        return tree_map(functools.partial(_cast, dtype), (args, kwargs))

    def _notice_backward(self, args, kwargs):
        """Inputs that say when backward has come through the module."""
        if not facula.is_grad_enabled():
            return args, kwargs
        flat, spec = tree_flatten((args, kwargs))
        at = [i for i, t in enumerate(flat) if isinstance(t, facula.Tensor) and t.requires_grad]
        if not at:
            return args, kwargs
        noticed = _NoticeBackward.apply(self, *[flat[i] for i in at])
        for i, t in zip(at, noticed, strict=True):
            flat[i] = t
        return tree_unflatten(flat, spec)

    def _post_forward(self, module, args, output):
        if self.finds_shapes:
            return self._cast_output(output)
        if self.training is TrainingState.PRE_BACKWARD:
            return output
        self._entered.add(("ended", id(module)))
        if any(("ended", id(m)) not in self._entered for m in self.modules):
            return self._awaiting(output)
        self._entered.clear()
        self.training = TrainingState.IDLE
        if self.group is not None:
            for_evaluation = self.auto_reshard and not facula.is_grad_enabled()
            if self.group.reshard_after_forward and facula.is_grad_enabled():
                self.group.reshard_for_backward()
            elif self.group.reshard_after_forward or for_evaluation:
                self.group.reshard()
            if facula.is_grad_enabled():
                self.group.after_forward()
        return self._cast_output(self._awaiting(output))

    def _cast_output(self, output):
        dtype = self.policy.output_dtype
        return output if dtype is None else tree_map(functools.partial(_cast, dtype), output)

    def _after_error(self, module, args, output):
        """Have the module show shards again if its forward has raised."""
        has_ended = ("ended", id(module)) in self._entered or id(module) not in self._entered
        if has_ended or self.training is TrainingState.PRE_BACKWARD:
            return
        self._entered.clear()
        self.training = TrainingState.IDLE
        if self.group is not None:
            self.group.reshard()

    def _awaiting(self, output):
        """The output, with hooks at which backward enters the module."""
        if facula.is_grad_enabled():
            for t in tree_flatten(output)[0]:
                if isinstance(t, facula.Tensor) and t.requires_grad:
                    t.register_hook(self._pre_backward)
        return output

    # --- backward

    def _pre_backward(self, grad):
        is_first = self.training is not TrainingState.PRE_BACKWARD  # of several outputs
        self.training = TrainingState.PRE_BACKWARD
        self.await_end()
        if self.group is None or not self.unshard_in_backward:
            return
        self.group.unshard()
        self.group.wait_for_unshard()
        if not is_first:
            return
        if self.backward_prefetch:
            for state in self.backward_prefetch:
                if state.group is not None:
                    state.group.unshard(async_op=True)
        elif self.prefetch_at is TrainingState.PRE_BACKWARD:
            self.group.prefetch_for_backward()

    def await_end(self):
        """Have the end of the backward pass noticed."""
        if self.context.callback_queued:
            return
        self.context.callback_queued = True
        facula.autograd.graph.queue_callback(self.context.states[0].end_backward)

    def post_backward(self):
        """Backward has come through the module."""
        self.training = TrainingState.POST_BACKWARD
        if self.group is None:
            return
        if self.prefetch_at is TrainingState.POST_BACKWARD:
            self.group.prefetch_for_backward()
        self.group.post_backward()

    def end_backward(self):
        """The backward pass has ended: reduce what has not been yet."""
        self.context.callback_queued = False
        for state in self.context.states:
            if state.training is TrainingState.PRE_BACKWARD:
                state.post_backward()
            elif state.group is not None and any(
                p.unsharded_param is not None and p.unsharded_param.grad is not None
                for p in state.group.params
            ):
                state.post_backward()
            state.training = TrainingState.IDLE
            if state.group is not None and state.group.reshard_after_backward:
                state.group.reshard()  # gathered ahead, but not needed
        if not self.context.manual_finalization:
            self.finalize()

    def abandon_pass(self):
        """Forget a pass that an error has ended."""
        for state in self.context.states:
            state.training = TrainingState.IDLE
            state._entered.clear()
            if state.group is None:
                continue
            state.group.reshard()
            for p in state.group.params:
                if p.unsharded_param is not None:
                    p.unsharded_param.grad = None
        self.context.callback_queued = False
        self.finalize()

    def finalize(self):
        """Wait for all reductions."""
        with facula.no_grad():
            self.context.comm.finish_reductions()
        if self.context.is_last_backward:
            for state in self.context.states:
                if state.group is not None:
                    state.group.end_pass()
            self.context.comm.post_forward_order.clear()


def _cast(dtype, value):
    if isinstance(value, facula.Tensor) and value.is_floating_point() and value.dtype != dtype:
        return value.to(dtype)
    return value


class _NoticeBackward(facula.autograd.Function):
    """Its inputs; when their gradients are known, backward has come through the module."""

    @staticmethod
    def forward(ctx, state, *tensors):
        ctx.state = state
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx, *grads):
        ctx.state.post_backward()
        return None, *grads
