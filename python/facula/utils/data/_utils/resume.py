"""Where the random numbers of an epoch began, so that its order can be drawn again."""

from __future__ import annotations

from contextlib import contextmanager

import facula
from facula.utils.data._utils.seeds import random_states, set_random_states


def _as_bytes(state):
    return bytes(memoryview(state.untyped_storage()))


def _generators(loader):
    """The generators that belong to the loader and its samplers, by owner."""
    owners = {
        "loader": loader,
        "sampler": loader.sampler,
        "batch_sampler": loader.batch_sampler,
        "batch_sampler.sampler": getattr(loader.batch_sampler, "sampler", None),
    }
    found = {name: getattr(owner, "generator", None) for name, owner in owners.items()}
    return {name: g for name, g in found.items() if isinstance(g, facula.Generator)}


class EpochStart:
    """The states of the generators when an epoch began.

    Args:
        loader (DataLoader): whose epoch it is.
        state (dict): of another EpochStart; None to take the states as they are now.
    """

    def __init__(self, loader, state=None):
        self.state = state or {
            "process": random_states(),
            "generators": {
                name: _as_bytes(g.get_state()) for name, g in _generators(loader).items()
            },
        }

    @contextmanager
    def replayed(self, loader, again):
        """For a `with` block, draw from these states, where an epoch is drawn again.

        The generators of the process are put back at the end; those of the loader and its
        samplers go on from where the block leaves them.
        """
        if not again:
            yield
            return
        now = random_states()
        set_random_states(self.state["process"])
        for name, generator in _generators(loader).items():
            words = bytearray(self.state["generators"][name])
            generator.set_state(facula.frombuffer(words, dtype=facula.uint8))
        try:
            yield
        finally:
            set_random_states(now)
