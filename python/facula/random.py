"""The default generator of random numbers."""

from __future__ import annotations

from contextlib import contextmanager

from facula import _C


def manual_seed(seed):
    """Restart the default stream from `seed` (int); returns the generator."""
    return _C._default_generator().manual_seed(int(seed))


def seed():
    """Restart the default stream from a number of the system; returns that number."""
    return _C._default_generator().seed()


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
