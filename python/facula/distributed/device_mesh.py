"""Grids of devices of all processes."""

from facula.distributed.distributed_c10d import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
