"""Averages among neighbours often, and among ever more ranks less often."""

from __future__ import annotations

import facula.distributed as dist
from facula.distributed.algorithms.model_averaging import averagers, utils

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(averagers.ModelAverager):
    """Averages a model over groups whose size hangs on the step.

    Args:
        period_group_size_dict (dict): period -> number of neighbouring ranks that average then, in
            rising order of both; the last number is that of all ranks. Of the periods that divide
            a step the longest is taken.
        warmup_steps (int): steps before the first average.
        process_group (ProcessGroup): the ranks; the default group if None.

    Raises:
        ValueError: no periods; periods or sizes that do not rise, or whose last is not the number
            of ranks; negative warmup_steps.
    """

    def __init__(self, period_group_size_dict=None, warmup_steps=0, process_group=None):
        super().__init__(process_group)
        self._periods = list((period_group_size_dict or {}).items())
        self._check(warmup_steps)
        self.warmup_steps = warmup_steps
        world = dist.get_world_size(self.process_group)
        self.period_process_group_dict = {
            period: self.process_group if size == world else dist.new_subgroups(group_size=size)[0]
            for period, size in self._periods
        }

    def _check(self, warmup_steps):
        world = dist.get_world_size(self.process_group)
        if not self._periods:
            raise ValueError("HierarchicalModelAverager(): expected periods; got none")
        periods, sizes = (list(part) for part in zip(*self._periods, strict=True))
        for what, found in (("periods", periods), ("group sizes", sizes)):
            if found != sorted(set(found)) or found[0] < 1:
                raise ValueError(
                    f"HierarchicalModelAverager(): {what} must be positive and rise; got {found}"
                )
        if sizes[-1] != world:
            raise ValueError(
                f"HierarchicalModelAverager(): the last group size must be {world}, that of the "
                f"process group; got {sizes[-1]}"
            )
        if warmup_steps < 0:
            raise ValueError(
                "HierarchicalModelAverager(): warmup_steps must not be negative; got "
                f"{warmup_steps}"
            )

    def _find_process_group(self):
        for period in reversed(self.period_process_group_dict):
            if self.step % period == 0:
                return self.period_process_group_dict[period]
        return None

    def average_parameters(self, params):
        """Average those of `params` (Tensors or groups) that have a gradient, if it is due."""
        if self.step >= self.warmup_steps:
            group = self._find_process_group()
            if group is not None:
                utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
