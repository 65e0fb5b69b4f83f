"""Join: ranks with different numbers of inputs."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import NamedTuple

import facula

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a rank that has no more inputs does for the others."""

    def main_hook(self):
        """Called for each iteration of the others."""

    def post_hook(self, is_last_joiner):
        """Called once, when no rank has inputs any more.

        Args:
            is_last_joiner (bool): whether this rank was one of the last that had some.
        """


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config():
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """What communicates in each iteration, and can go on when a rank has no more inputs."""

    @abstractmethod
    def __init__(self):
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs):
        """What a rank without inputs does (JoinHook)."""

    @property
    @abstractmethod
    def join_device(self):
        """The device for the tensors of a Join."""

    @property
    @abstractmethod
    def join_process_group(self):
        """The ranks."""


class Join:
    """A scope in which ranks may have different numbers of inputs.

    Args:
        joinables (list of Joinable): what communicates in each iteration.
        enable (bool): False for a scope that does nothing.
        throw_on_early_termination (bool): have all ranks raise when the first one ends.
        **kwargs: for the `join_hook` of each.

    Raises:
        ValueError: there are no joinables, or they have different groups or devices.
        RuntimeError: some rank has no more inputs, with `throw_on_early_termination`.
    """

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if not joinables:
            raise ValueError("Join(): expected at least one joinable; got none")
        self._joinables = joinables
        self._join_hooks = [j.join_hook(**kwargs) for j in joinables]
        self._enable, self._throw = enable, throw_on_early_termination
        groups = {j.join_process_group for j in joinables}
        devices = {j.join_device for j in joinables}
        if len(groups) > 1 or len(devices) > 1:
            raise ValueError(
                "Join(): expected joinables of one process group and device; got several"
            )
        self._process_group, self._device = groups.pop(), devices.pop()
        for i, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, i == 0)

    def __enter__(self):
        return None

    def __exit__(self, kind, value, traceback):
        if not self._enable or kind is not None:
            self._end()
            return
        is_last, turns = True, 0
        try:
            while self._count_others() > 0:
                if self._throw:
                    self._raise_for_end()
                is_last = False
                turns += 1
                if turns == 1000:
                    warnings.warn(
                        f"Join: rank {self._process_group.rank()} has had no inputs for 1000 "
                        "iterations; the inputs are very uneven",
                        stacklevel=2,
                    )
                for hook in self._join_hooks:
                    hook.main_hook()
            for hook in self._join_hooks:
                hook.post_hook(is_last)
        finally:
            self._end()

    def _end(self):
        for joinable in self._joinables:
            joinable._join_config = _JoinConfig.construct_disabled_join_config()

    def _count_others(self):
        """How many ranks begin an iteration, or 0 when none does any more."""
        count = facula.zeros(1, device=self._device)
        self._process_group.allreduce([count]).wait()
        return int(count.item())

    def _raise_for_end(self):
        raise RuntimeError(
            f"Join: rank {self._process_group.rank()} has no more inputs, and others have"
        )

    @staticmethod
    def notify_join_context(joinable):
        """Say that an iteration begins; called by a joinable before it communicates.

        Args:
            joinable (Joinable): who calls. Only the first of a Join has something to do.

        Returns:
            Work, or None
        """
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        from facula.distributed._reduce_op import AllreduceOptions

        options = AllreduceOptions()
        options.asyncOp = True
        ones = facula.ones(1, device=joinable.join_device)
        work = joinable.join_process_group.allreduce([ones], options)
        if config.throw_on_early_termination:
            work.wait()
            if int(ones.item()) < joinable.join_process_group.size():
                raise RuntimeError("Join: some rank has no more inputs, and this one has")
        return work
