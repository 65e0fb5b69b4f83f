"""The place that `facula.distributed.device_mesh` had before."""

from facula.distributed.device_mesh import *  # noqa: F403
