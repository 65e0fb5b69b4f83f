"""The place that `facula.distributed.tensor` had before."""

from facula.distributed.tensor import *  # noqa: F403
from facula.distributed.tensor import (  # noqa: F401  (names of this module, too)
    DeviceMesh,
    init_device_mesh,
)
