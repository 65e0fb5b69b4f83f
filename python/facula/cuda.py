"""CUDA: this build has none, and says so."""

from __future__ import annotations


def is_available():
    """Whether CUDA devices can be used: False in this build."""
    return False


def device_count():
    """The number of CUDA devices: 0 in this build."""
    return 0


def is_initialized():
    """Whether CUDA was started: False in this build."""
    return False


def manual_seed(seed):
    """Seed the CUDA generator, of which there is none."""


def manual_seed_all(seed):
    """Seed all CUDA generators, of which there are none."""


def empty_cache():
    """Give back cached device memory, of which there is none."""


def synchronize(device=None):
    """Wait for a device: raises AssertionError, since there is none."""
    raise AssertionError("Torch not compiled with CUDA enabled")
