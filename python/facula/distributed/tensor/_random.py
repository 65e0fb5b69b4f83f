"""Random numbers of DTensors: generators that are equal at all ranks."""

from __future__ import annotations

import facula


def manual_seed(seed, device_mesh):
    """Seed the generators of all ranks of a mesh alike.

    Args:
        seed (int): the same at all ranks.
        device_mesh (DeviceMesh): the ranks.

    Raises:
        RuntimeError: the seeds differ.

    Example:
        >>> def work(rank):
        ...     mesh = facula.distributed.init_device_mesh("cpu", (2,))
        ...     manual_seed(0, mesh)
        ...     return randn(2, device_mesh=mesh, placements=[Shard(0)]).full_tensor()
        >>> facula.distributed.threads.run(work, 2)
        [tensor([ 1.5410, -0.2934]), tensor([ 1.5410, -0.2934])]
    """
    if device_mesh.get_coordinate() is None:
        return
    for group in device_mesh.get_all_groups():
        seeds = [None] * group.size()
        facula.distributed.all_gather_object(seeds, seed, group=group)
        if len(set(seeds)) > 1:
            raise RuntimeError(f"manual_seed(): expected one seed at all ranks; got {seeds}")
    facula.manual_seed(seed)


def is_rng_supported_mesh(device_mesh):
    """Whether random operators give what one process would draw: True on the CPU.

    Args:
        device_mesh (DeviceMesh): the ranks.
    """
    return device_mesh.device_type == "cpu"
