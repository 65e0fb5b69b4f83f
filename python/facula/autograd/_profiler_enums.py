"""What the profiler's names and steps are."""

from __future__ import annotations

import enum


class _Enum(enum.Enum):
    def __repr__(self):
        return f"<{type(self).__name__}.{self.name}: {self.value}>"


class DeviceType(_Enum):
    """Kinds of devices."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20


class ProfilerActivity(_Enum):
    """What is recorded: the CPU's work; that of devices this build does not have is none."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(_Enum):
    """What the profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


class RecordScope(_Enum):
    """What an event is of."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    USER_SCOPE = 7
