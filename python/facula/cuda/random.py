"""Random numbers of CUDA devices: seeding does nothing where there are none."""

from __future__ import annotations

import facula


def _generators():
    return facula.cuda.default_generators


def manual_seed(seed):
    """Seed the generator of the current CUDA device, if there is one."""
    if _generators():
        _generators()[facula.cuda.current_device()].manual_seed(int(seed))


def manual_seed_all(seed):
    """Seed the generators of all CUDA devices."""
    for generator in _generators():
        generator.manual_seed(int(seed))


def seed():
    """Seed the generator of the current CUDA device, if there is one, by chance."""
    if _generators():
        _generators()[facula.cuda.current_device()].seed()


def seed_all():
    """Seed the generators of all CUDA devices by chance."""
    for generator in _generators():
        generator.seed()


def initial_seed():
    """The seed of the current CUDA device's generator; AssertionError without one."""
    facula.cuda.init()
    return _generators()[facula.cuda.current_device()].initial_seed()


def get_rng_state(device="cuda"):
    """The state of a CUDA device's generator, uint8; AssertionError without one."""
    facula.cuda.init()
    index = facula.cuda._utils._get_device_index(device, optional=True)
    return _generators()[index].get_state()


def get_rng_state_all():
    """The states of all CUDA devices' generators, as a list."""
    return [generator.get_state() for generator in _generators()]


def set_rng_state(new_state, device="cuda"):
    """Set the state of a CUDA device's generator; nothing to do without one."""
    if _generators():
        index = facula.cuda._utils._get_device_index(device, optional=True)
        _generators()[index].set_state(new_state)


def set_rng_state_all(new_states):
    """Set the states of all CUDA devices' generators."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
