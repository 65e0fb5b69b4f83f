"""Pipelines: parts of a model on different ranks, to which a batch goes in microbatches.

How it works is told in `docs/internals/distributed.md`.
"""

from facula.distributed._planned import planned
from facula.distributed.pipelining._pipe import Pipe, SplitPoint, pipe_split, pipeline
from facula.distributed.pipelining.schedules import (
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
    _ScheduleForwardOnly,  # noqa: F401
)
from facula.distributed.pipelining.stage import PipelineStage, build_stage

__all__ = [
    "Pipe",
    "PipelineStage",
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "SplitPoint",
    "build_stage",
    "pipe_split",
    "pipeline",
]

planned(
    globals(),
    "PipelineActivationLiveness PipelineStageInfo analyze_pipeline_activation_liveness",
)
