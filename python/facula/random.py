"""The default generator of random numbers."""

from __future__ import annotations

from contextlib import contextmanager

import facula
from facula import _C

default_generator = _C._default_generator()


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
    devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type=None
):
    """Context manager: the default streams are put back on the way out.

    Args:
        devices (iterable of int): the devices whose streams are put back beside the CPU's; all
            that there are unless given.
        enabled (bool): False lets everything be.
        device_type (str): the devices' kind; that of the accelerator unless given.

    Example:
        >>> state = facula.get_rng_state()
        >>> with facula.random.fork_rng():
        ...     x = facula.rand(2)
        >>> facula.equal(state, facula.get_rng_state())
        True
    """
    if not enabled:
        yield
        return
    kind = _C._accelerator_name() if device_type is None else facula.device(device_type).type
    count = _C._device_count(kind) if kind not in (None, "cpu", "meta") else 0
    indices = range(count) if devices is None else [_index(device) for device in devices]
    if any(not 0 <= index < count for index in indices):
        raise RuntimeError(f"fork_rng(): there are {count} devices of {kind}; got {devices}")
    generators = [_C._default_generator()]
    generators += [_C._default_generator(facula.device(kind, index)) for index in indices]
    states = [generator.get_state() for generator in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)


def _index(device):
    return device if isinstance(device, int) else facula.device(device).index or 0


def thread_safe_generator():
    """The generator of this worker process of a loader: None, the default one serves."""
    return None
