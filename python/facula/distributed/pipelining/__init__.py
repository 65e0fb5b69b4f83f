"""Pipelines: parts of a model on different ranks, to which a batch goes in microbatches.

How it works is told in `docs/internals/distributed.md`.
"""

from facula.distributed.pipelining._liveness import (
    PipelineActivationLiveness,
    analyze_pipeline_activation_liveness,
)
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
from facula.distributed.pipelining.stage import PipelineStage, PipelineStageInfo, build_stage

__all__ = [
    "Pipe",
    "PipelineActivationLiveness",
    "PipelineStage",
    "PipelineStageInfo",
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "SplitPoint",
    "analyze_pipeline_activation_liveness",
    "build_stage",
    "pipe_split",
    "pipeline",
]
