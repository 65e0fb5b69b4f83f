"""Selective checkpointing: results of chosen operators are kept, the others are computed again."""

from __future__ import annotations

import enum
from collections import defaultdict

from facula import _C
from facula.autograd.grad_mode import no_grad
from facula.utils._python_dispatch import TorchDispatchMode
from facula.utils._pytree import tree_flatten, tree_map

_Tensor = _C.Tensor
# Operators whose results are computed again, whatever the policy: they cost nothing.
SAC_IGNORED_OPS = set()


class CheckpointPolicy(enum.Enum):
    """What selective checkpointing does with the results of an operator.

    MUST and PREFER mean the same here. Results of CPU_OFFLOAD wait in the CPU's memory.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVED = {CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE}
_OFFLOADED = {CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD}


class SelectiveCheckpointContext:
    """What a policy function is told: the result of the operator (`op_output`), and that the
    function is run for the first time (`is_recompute` is False)."""

    def __init__(self, *, is_recompute, op_output=None):
        self.is_recompute = is_recompute
        self.op_output = op_output


class _Kept:
    """A tensor that waits for the second run."""

    def __init__(self, tensor, offload):
        kept = tensor.detach()
        self.tensor = kept.cpu() if offload else kept
        self.version = self.tensor._version
        self.device = tensor.device

    def restored(self, may_be_changed):
        if not may_be_changed and self.tensor._version != self.version:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated"
            )
        return self.tensor.to(self.device).detach()


class _Calls:
    """What the first run did: for each operator, in order of its calls, its result or None."""

    def __init__(self):
        self.results = defaultdict(list)
        self.used_up = False


class _FirstRun(TorchDispatchMode):
    """Asks the policy about every operator, and keeps the results that it wants."""

    def __init__(self, policy, calls):
        super().__init__()
        self.policy, self.calls = policy, calls

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS:
            return result
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        policy = self.policy(context, func, *args, **kwargs)
        if isinstance(policy, bool):
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        self.calls.results[func].append(self._kept(func, result, policy))
        return result

    def _kept(self, func, result, policy):
        """The result with tensors ready to wait; None where it is computed again."""
        offload = policy in _OFFLOADED
        if not (offload or policy in _SAVED) or not _is_worth_keeping(result, offload):
            return None
        if func._schema.is_mutable:
            raise RuntimeError(
                f"selective checkpointing cannot keep the result of {func}, which changes its "
                "arguments; let the policy have it computed again"
            )
        with no_grad():
            return tree_map(lambda x: _Kept(x, offload) if isinstance(x, _Tensor) else x, result)


def _is_worth_keeping(result, offload):
    """Whether there are tensors, which the CPU's memory would not hold anyhow."""
    tensors = [leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, _Tensor)]
    if offload:
        return any(tensor.device.type != "cpu" for tensor in tensors)
    return bool(tensors)


class _SecondRun(TorchDispatchMode):
    """Gives the results that were kept, each once, and runs the other operators."""

    def __init__(self, calls, may_be_changed):
        super().__init__()
        self.calls, self.may_be_changed = calls, may_be_changed
        self.positions = defaultdict(int)

    def __enter__(self):
        if self.calls.used_up:
            raise RuntimeError(
                "a region under selective checkpointing may be run backward only once: what it "
                "kept is gone"
            )
        self.calls.used_up = True
        return super().__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kept = None if func in SAC_IGNORED_OPS else self._next(func)
        if kept is None:
            return func(*args, **(kwargs or {}))
        with no_grad():
            return tree_map(self._restored, kept)

    def _next(self, func):
        at, results = self.positions[func], self.calls.results[func]
        self.positions[func] += 1
        if at >= len(results):
            return None
        kept, results[at] = results[at], None
        return kept

    def _restored(self, leaf):
        return leaf.restored(self.may_be_changed) if isinstance(leaf, _Kept) else leaf


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """Contexts in which `checkpoint` keeps the results of chosen operators.

    Args:
        policy_fn_or_list (callable or list): called as policy(ctx, op, *args, **kwargs) after each
            operator of the first run, it gives a CheckpointPolicy. A list of OpOverloads saves
            their results.
        allow_cache_entry_mutation (bool): results that were changed in place since are taken
            nevertheless.

    Returns:
        tuple: the context of the first run and that of the second, which can be entered once.

    Raises:
        TypeError: the policy is neither a function nor a list.
        ValueError: an item of the list is no OpOverload.

    Example:
        >>> from functools import partial
        >>> from facula.utils.checkpoint import checkpoint
        >>> keep = [facula.ops.aten.mm.default]
        >>> x = facula.ones(2, 2, requires_grad=True)
        >>> y = checkpoint(
        ...     lambda x: (x @ x).sigmoid().sum(),
        ...     x,
        ...     use_reentrant=False,
        ...     context_fn=partial(create_selective_checkpoint_contexts, keep),
        ... )
        >>> y.backward()
    """
    calls = _Calls()
    policy = _policy_of(policy_fn_or_list)
    return _FirstRun(policy, calls), _SecondRun(calls, allow_cache_entry_mutation)


def _policy_of(policy_fn_or_list):
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, _C.OpOverload):
                raise ValueError(
                    "create_selective_checkpoint_contexts(): expected OpOverloads, such as "
                    f"facula.ops.aten.mm.default; got {op!r}"
                )
        chosen = set(policy_fn_or_list)
        return lambda ctx, op, *args, **kwargs: op in chosen
    if callable(policy_fn_or_list):
        return policy_fn_or_list
    raise TypeError(
        "create_selective_checkpoint_contexts(): expected a function or a list of operators; got "
        f"{type(policy_fn_or_list).__name__}"
    )
