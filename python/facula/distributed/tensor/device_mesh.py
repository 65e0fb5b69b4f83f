"""Grids of ranks, where `distributed.tensor` has them."""

from facula.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
