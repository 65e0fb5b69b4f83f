"""When models that were trained apart are averaged: after so many steps each time."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod

import facula.distributed as dist
from facula.distributed.algorithms.model_averaging import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Averages a model over ranks, when it is due.

    Args:
        process_group (ProcessGroup): the ranks; the default group if None.
    """

    def __init__(self, process_group=None):
        self.process_group = dist.group.WORLD if process_group is None else process_group
        self.step = 0

    @abstractmethod
    def average_parameters(self, params):
        """Average `params` if it is due, and count the step."""


class PeriodicModelAverager(ModelAverager):
    """Averages a model every `period` steps, once `warmup_steps` have gone.

    Args:
        period (int): steps from one average to the next.
        warmup_steps (int): steps before the first.
        process_group (ProcessGroup): the ranks; the default group if None.

    Raises:
        ValueError: a period below 1, or negative warmup_steps.
    """

    def __init__(self, period, warmup_steps=0, process_group=None):
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError(
                f"PeriodicModelAverager(): warmup_steps must not be negative; got {warmup_steps}"
            )
        if period < 1:
            raise ValueError(f"PeriodicModelAverager(): period must be at least 1; got {period}")
        if period == 1:
            warnings.warn(
                "PeriodicModelAverager(): averaging after every step costs more than averaging "
                "gradients",
                stacklevel=2,
            )
        self.warmup_steps, self.period = warmup_steps, period

    def average_parameters(self, params):
        """Average those of `params` (Tensors or groups) that have a gradient, if it is due."""
        due = self.step >= self.warmup_steps
        if due and (self.step - self.warmup_steps) % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
