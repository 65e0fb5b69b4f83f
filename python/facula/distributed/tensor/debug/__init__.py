"""What DTensors do: which collectives run, and which rank has what."""

from __future__ import annotations

from facula.distributed.tensor.debug._comm_mode import CommDebugMode
from facula.distributed.tensor.debug._visualize_sharding import visualize_sharding

__all__ = ["CommDebugMode", "visualize_sharding"]
