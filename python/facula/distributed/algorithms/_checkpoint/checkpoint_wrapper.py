"""Modules whose activations are computed again, or kept in the CPU's memory, for backward."""

from __future__ import annotations

from enum import Enum, auto
from functools import partial

import facula
from facula.autograd.graph import save_on_cpu
from facula.distributed.fsdp.wrap import _Policy, _recursive_wrap, _wrap_targets
from facula.nn import Module
from facula.utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """Which kind of checkpoint is used: see `facula.utils.checkpoint.checkpoint`."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """A module inside of another, whose names do not show in parameters and state dicts.

    Args:
        mod (Module): the module.
    """

    def __init__(self, mod):
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self.register_state_dict_post_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)

    def forward(self, *args, **kwargs):
        """Refused: subclasses have it.

        Raises:
            ValueError: always.
        """
        raise ValueError("ActivationWrapper: expected a subclass that has forward; got none")

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key):
        return self._checkpoint_wrapped_module[key]

    def named_parameters(self, *args, **kwargs):
        """Parameters with the names that they have without the wrapper."""
        for name, p in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), p


def _without_prefix(module, state_dict, prefix, *args):
    old = prefix + _CHECKPOINT_PREFIX
    for key in [k for k in state_dict if k.startswith(old)]:
        state_dict[prefix + key[len(old) :]] = state_dict.pop(key)


def _with_prefix(module, state_dict, prefix, *args):
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[prefix + _CHECKPOINT_PREFIX + key[len(prefix) :]] = state_dict.pop(key)


class OffloadWrapper(ActivationWrapper):
    """A module whose activations lie in the CPU's memory until backward.

    Args:
        mod (Module): the module.
    """

    def forward(self, *args, **kwargs):
        """The module's."""
        with save_on_cpu(pin_memory=facula.cuda.is_available()):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """A module that keeps its inputs alone, and computes again in backward.

    Args:
        mod (Module): the module.
        checkpoint_impl (CheckpointImpl): which kind.
        checkpoint_fn (callable): in place of `facula.utils.checkpoint.checkpoint`.
        checkpoint_fn_kwargs: further arguments of it.
    """

    def __init__(
        self,
        mod,
        checkpoint_impl=CheckpointImpl.NO_REENTRANT,
        checkpoint_fn=None,
        **checkpoint_fn_kwargs,
    ):
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
            checkpoint_fn = partial(checkpoint, use_reentrant=reentrant)
        self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args, **kwargs):
        """The module's."""
        inner = self._checkpoint_wrapped_module
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(inner, *args, **kwargs)
        # Checkpoints of this kind take no keywords.
        names = list(kwargs)

        def call(*flat):
            by_name = dict(zip(names, flat[len(args) :], strict=True))
            return inner(*flat[: len(args)], **by_name)

        return self.checkpoint_fn(call, *args, *kwargs.values())


def offload_wrapper(module):
    """The module, with activations in the CPU's memory until backward.

    Args:
        module (Module): the module.

    Returns:
        OffloadWrapper
    """
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module,
    checkpoint_impl=CheckpointImpl.NO_REENTRANT,
    checkpoint_fn=None,
    **checkpoint_fn_kwargs,
):
    """The module, with activations that are computed again in backward.

    Args:
        module (Module): the module.
        checkpoint_impl (CheckpointImpl): which kind of checkpoint.
        checkpoint_fn (callable): in place of `facula.utils.checkpoint.checkpoint`.
        checkpoint_fn_kwargs: further arguments of it.

    Returns:
        CheckpointWrapper

    Example:
        >>> layer = checkpoint_wrapper(facula.nn.Linear(2, 1))
        >>> layer(facula.ones(1, 2)).sum().backward()
        >>> layer.weight.grad
        tensor([[1., 1.]])
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model,
    checkpoint_wrapper_fn=checkpoint_wrapper,
    check_fn=lambda _: True,
    auto_wrap_policy=None,
):
    """Wrap submodules of a model in place.

    Args:
        model (Module): stays as it is itself.
        checkpoint_wrapper_fn (callable): takes a submodule, returns its wrapper.
        check_fn (callable): which submodules; called with each.
        auto_wrap_policy (callable): which, as a policy of `facula.distributed.fsdp.wrap`; in place
            of `check_fn`.

    Example:
        >>> model = facula.nn.Sequential(facula.nn.Linear(1, 1), facula.nn.ReLU())
        >>> is_linear = lambda m: isinstance(m, facula.nn.Linear)
        >>> apply_activation_checkpointing(model, check_fn=is_linear)
        >>> [type(m).__name__ for m in model]
        ['CheckpointWrapper', 'ReLU']
    """
    if isinstance(auto_wrap_policy, _Policy):
        _wrap_targets(model, auto_wrap_policy._run_policy(model, set(), {}), checkpoint_wrapper_fn)
        return
    if auto_wrap_policy is not None:
        _recursive_wrap(
            model, auto_wrap_policy, checkpoint_wrapper_fn, set(), set(), only_wrap_children=True
        )
        return
    targets = {m: {} for m in model.modules() if m is not model and check_fn(m)}
    _wrap_targets(model, targets, checkpoint_wrapper_fn)
