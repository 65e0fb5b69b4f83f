"""Parts of a CUDA device's processors: a class to test for, which needs a device to be made."""

from __future__ import annotations

import facula

__all__ = ["GreenContext"]


def _refuse():
    facula.cuda.init()  # AssertionError without a CUDA device
    raise NotImplementedError("cuda.GreenContext: parts of a device cannot be used yet")


class GreenContext:
    """Work on some of a device's processors; AssertionError without a CUDA device.

    Args:
        num_sms (int): how many processors.
        sm_partition (str), workqueue_scope (str), workqueue_concurrency_limit (int): how they and
            the queues of work are divided.
        device_id (int): the device.
    """

    def __init__(
        self,
        *,
        num_sms=None,
        sm_partition=None,
        workqueue_scope=None,
        workqueue_concurrency_limit=None,
        device_id=None,
    ):
        _refuse()

    @classmethod
    def create(
        cls,
        *,
        num_sms=None,
        sm_partition=None,
        workqueue_scope=None,
        workqueue_concurrency_limit=None,
        device_id=None,
    ):
        """A context; AssertionError without a CUDA device."""
        return cls(num_sms=num_sms, device_id=device_id)

    @staticmethod
    def max_workqueue_concurrency(device_id=None):
        """How many queues a device has; AssertionError without one."""
        _refuse()

    @staticmethod
    def split(
        *,
        num_sms=None,
        coscheduled_sm_count=None,
        preferred_coscheduled_sm_count=None,
        backfill=False,
        locality_domain_ids=None,
        workqueue_scope=None,
        workqueue_concurrency_limit=None,
        device_id=None,
    ):
        """Contexts for parts of a device; AssertionError without one."""
        _refuse()

    @property
    def device_id(self):
        """The device."""
        return _refuse()

    @property
    def locality_domain_id(self):
        """Which part of the device's memory is near."""
        return _refuse()

    @property
    def sm_count(self):
        """How many processors."""
        return _refuse()

    @property
    def sm_partition(self):
        """How they were chosen."""
        return _refuse()

    def set_context(self):
        """Make it the current one."""
        _refuse()

    def pop_context(self):
        """Go back to the one before."""
        _refuse()

    def Stream(self):
        """A stream on its processors."""
        _refuse()
