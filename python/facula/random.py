"""The default generator of random numbers."""

from __future__ import annotations

from contextlib import contextmanager

import facula
from facula import _C


def _seed_devices(number):
    """Restart the default streams of the accelerator's devices."""
    name = _C._accelerator_name()
    if name is None or _C._devices_lost_by_fork():
        return
    for index in range(_C._device_count(name)):
        _C._default_generator(facula.device(name, index)).manual_seed(number)


def manual_seed(seed):
    """Restart the default streams of all devices from `seed` (int); returns the CPU's generator."""
    seed = int(seed)
    generator = _C._default_generator().manual_seed(seed)
    _seed_devices(seed)
    return generator


def seed():
    """Restart the default streams from a number of the system; returns that number."""
    number = _C._default_generator().seed()
    _seed_devices(number)
    return number


def initial_seed():
    """The seed that the default stream started from."""
    return _C._default_generator().initial_seed()


def get_rng_state():
    """The state of the default stream: a uint8 tensor."""
    return _C._default_generator().get_state()


def set_rng_state(new_state):
    """Set the state of the default stream to one that `get_rng_state` gave."""
    _C._default_generator().set_state(new_state)


@contextmanager
def fork_rng(
    devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"
):
    """Context manager: the default stream is put back on the way out."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
