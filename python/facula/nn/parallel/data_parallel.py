"""DataParallel: a batch split over devices; on the CPU, the module itself."""

from __future__ import annotations

import facula
from facula.nn import Module


class DataParallel(Module):
    """A module whose batches are split over devices; without any, it runs the module.

    Args:
        module (Module): the module, `module` in here.
        device_ids (list), output_device: devices of an accelerator; there are none.
        dim (int): the dimension that counts the items of a batch.

    Example:
        >>> model = facula.nn.DataParallel(facula.nn.Identity())
        >>> model(facula.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, module, device_ids=None, output_device=None, dim: int = 0):
        super().__init__()
        self.module = module
        self.device_ids = []
        self.dim = dim

    def replicate(self, module, device_ids):
        """Copies of a module, one for each device."""
        from facula.nn.parallel import replicate

        return replicate(module, device_ids, not facula.is_grad_enabled())

    def scatter(self, inputs, kwargs, device_ids):
        """Arguments in parts, one for each device; they need devices that are there."""
        from facula.nn.parallel import scatter

        return scatter(inputs, device_ids, self.dim), scatter(kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas, inputs, kwargs):
        """The results of copies of a module for their arguments."""
        from facula.nn.parallel import parallel_apply

        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs, output_device):
        """Results of devices as one batch."""
        from facula.nn.parallel import gather

        return gather(outputs, output_device, dim=self.dim)

    def forward(self, *inputs, **kwargs):
        """What the module gives."""
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """What a module gives for a batch, split over devices.

    Raises:
        RuntimeError: there is no device to split it over.
    """
    if device_ids is None:
        raise RuntimeError("device type could not be determined")
    raise RuntimeError(f"data_parallel(): there are no devices {device_ids} in this build")
