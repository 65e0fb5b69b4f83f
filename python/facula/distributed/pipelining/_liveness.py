"""How many activations a schedule keeps at once, and which of them can share memory."""

from __future__ import annotations

import types
from dataclasses import dataclass

from facula.distributed.pipelining._actions import B, F, W, parts_of

__all__ = ["PipelineActivationLiveness", "analyze_pipeline_activation_liveness"]

_GRANULARITIES = ("microbatch", "stage_microbatch")


@dataclass(frozen=True)
class PipelineActivationLiveness:
    """Slots for what forward keeps for backward; made by `analyze_pipeline_activation_liveness`.

    Args:
        pp_rank (int): the rank of the pipeline whose schedule it is.
        granularity (str): whether a slot is for a microbatch, or for one in one stage.
        stage_indices (tuple of int): the stages.
        num_microbatches (int): of a step.
        slot_by_stage_and_microbatch (Mapping): the number of a slot for each (stage, microbatch).
        num_slots (int): how many are needed.
    """

    pp_rank: int
    granularity: str
    stage_indices: tuple
    num_microbatches: int
    slot_by_stage_and_microbatch: types.MappingProxyType
    num_slots: int
    _activation_lifetime_by_stage_and_microbatch: types.MappingProxyType

    def slot_for(self, stage_index, microbatch_index):
        """The number of the slot of a microbatch in a stage.

        Raises:
            ValueError: it is not among those that were looked at.
        """
        return self._find(
            "slot_for", self.slot_by_stage_and_microbatch, stage_index, microbatch_index
        )

    def get_activation_lifetime(self, stage_index, microbatch_index):
        """The places in the rank's actions of the forward and of what lets its activations go.

        Returns:
            tuple: two int; both places belong to the time

        Raises:
            ValueError: it is not among those that were looked at.
        """
        times = self._activation_lifetime_by_stage_and_microbatch
        return self._find("get_activation_lifetime", times, stage_index, microbatch_index)

    def _find(self, name, table, stage, microbatch):
        if (stage, microbatch) not in table:
            raise ValueError(
                f"{name}(): expected a stage of {list(self.stage_indices)} and a microbatch below "
                f"{self.num_microbatches}; got {stage} and {microbatch}"
            )
        return table[stage, microbatch]


def analyze_pipeline_activation_liveness(schedule, *, pp_rank, stage_indices, granularity):
    """Find out from when to when activations are kept, and share slots among them.

    They are kept from the forward to the backward, or to that of weights where it is apart. Slots
    are numbered in the order of forwards; each takes the lowest one that is free.

    Args:
        schedule (PipelineScheduleMulti): the schedule.
        pp_rank (int): the rank of the pipeline.
        stage_indices (sequence of int): stages of that rank.
        granularity (str): "stage_microbatch" for a slot for each stage, "microbatch" for one that
            all these stages share.

    Returns:
        PipelineActivationLiveness

    Raises:
        ValueError: another granularity, a rank or stages that the schedule does not have, or a
            schedule without backward.

    Example:
        >>> from facula.distributed import pipelining
        >>> def work(rank):
        ...     stage = pipelining.PipelineStage(
        ...         facula.nn.Linear(2, 2), rank, 2, facula.device("cpu"))
        ...     schedule = pipelining.ScheduleLoopedBFS(
        ...         [stage], 3, loss_fn=facula.nn.functional.mse_loss)
        ...     return analyze_pipeline_activation_liveness(
        ...         schedule, pp_rank=0, stage_indices=[0], granularity="microbatch").num_slots
        >>> facula.distributed.threads.run(work, 2)
        [3, 3]
    """
    name = "analyze_pipeline_activation_liveness"
    if granularity not in _GRANULARITIES:
        raise ValueError(f"{name}(): expected one of {_GRANULARITIES}; got {granularity!r}")
    stages = tuple(stage_indices)
    if not stages or len(set(stages)) != len(stages):
        raise ValueError(f"{name}(): expected some stages, each once; got {list(stages)}")
    order = schedule.pipeline_order_with_comms or schedule.pipeline_order
    if pp_rank not in order:
        raise ValueError(f"{name}(): expected a rank of {sorted(order)}; got {pp_rank}")
    times = _times(name, order[pp_rank], stages, schedule._n_microbatches)
    is_shared = granularity == "microbatch"
    times = _joined(times) if is_shared else times
    slots, count = _slots(times, is_shared)
    return PipelineActivationLiveness(
        pp_rank,
        granularity,
        stages,
        schedule._n_microbatches,
        types.MappingProxyType(slots),
        count,
        types.MappingProxyType(times),
    )


def _times(name, actions, stages, microbatches):
    """The first and last place of each (stage, microbatch)."""
    begins, ends = {}, {}
    for place, action in enumerate(actions):
        for part in parts_of(action) if action is not None else ():
            key = part.stage_index, part.microbatch_index
            if part.computation_type is F:
                begins[key] = place
            elif part.computation_type in (B, W):
                ends[key] = place
    wanted = [(stage, m) for stage in stages for m in range(microbatches)]
    for key in wanted:
        if key not in begins or key not in ends or ends[key] < begins[key]:
            raise ValueError(
                f"{name}(): expected a forward and then a backward of each microbatch of stages "
                f"{list(stages)}; stage {key[0]} has none of microbatch {key[1]}"
            )
    return {key: (begins[key], ends[key]) for key in wanted}


def _joined(times):
    """The same time for all stages of a microbatch: from the first forward to the last backward."""
    spans = {}
    for (_, m), (begin, end) in times.items():
        first, last = spans.get(m, (begin, end))
        spans[m] = min(first, begin), max(last, end)
    return {key: spans[key[1]] for key in times}


def _slots(times, is_shared):
    """The slot of each key, the lowest that is free, and their number."""
    owner = {key: key[1] if is_shared else key for key in times}
    spans = {owner[key]: time for key, time in times.items()}
    taken, free_at = {}, []  # the last place of each slot's activation
    for name, (begin, end) in sorted(spans.items(), key=lambda item: (item[1], item[0])):
        free = [slot for slot, last in enumerate(free_at) if last < begin]
        taken[name] = free[0] if free else len(free_at)
        free_at[taken[name] : taken[name] + 1] = [end]
    return {key: taken[owner[key]] for key in times}, len(free_at)
