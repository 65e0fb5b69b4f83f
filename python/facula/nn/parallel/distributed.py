"""DistributedDataParallel: a module in many processes, which this build cannot start."""

from __future__ import annotations

from facula.nn import Module


class DistributedDataParallel(Module):
    """A module whose gradients are added up over processes.

    Raises:
        ValueError: there is no process group, as always in this build.
    """

    def __init__(
        self,
        module,
        device_ids=None,
        output_device=None,
        dim=0,
        broadcast_buffers=None,
        init_sync=True,
        process_group=None,
        bucket_cap_mb=None,
        find_unused_parameters=False,
        check_reduction=False,
        gradient_as_bucket_view=False,
        static_graph=False,
        **options,
    ):
        super().__init__()
        from facula.distributed.distributed_c10d import _get_default_group

        _get_default_group()
