"""How long operators take, what memory they use, and how many multiplications they do.

Example:
    >>> from facula.profiler import profile, record_function
    >>> with profile(record_shapes=True) as prof:
    ...     with record_function("forward"):
    ...         y = facula.ones(2, 3) @ facula.ones(3, 4)
    >>> "aten::mm" in prof.key_averages().table(sort_by="cpu_time_total")
    True
"""

from facula.autograd._profiler_enums import (  # noqa: F401
    DeviceType,
    ProfilerAction,
    ProfilerActivity,
    RecordScope,
)
from facula.autograd.profiler import KinetoStepTracker, record_function  # noqa: F401
from facula.profiler.profiler import (
    kineto_available,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "DeviceType",
    "record_function",
]
