"""Copies of states, so that training may go on while they are saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import facula

__all__ = ["AsyncStager", "BlockingAsyncStager"]


@runtime_checkable
class AsyncStager(Protocol):
    """What copies a state before async_save() returns."""

    def stage(self, state_dict):
        """A copy of the state that nobody changes."""
        ...


class BlockingAsyncStager:
    """Copies a state to the CPU.

    Args:
        cache_staged_state_dict (bool): whether the memory of the copy is kept for the next one, of
            a state of the same form.
    """

    def __init__(self, cache_staged_state_dict=False):
        self.cache_staged_state_dict = cache_staged_state_dict
        self._cache = {}

    def stage(self, state_dict):
        """A copy of the state."""
        return self._copied(state_dict, ())

    def _copied(self, value, path):
        if isinstance(value, facula.Tensor):
            return self._copied_tensor(value.detach(), path)
        if isinstance(value, Mapping):
            return {k: self._copied(v, (*path, k)) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            found = [self._copied(v, (*path, i)) for i, v in enumerate(value)]
            return found if isinstance(value, list) else tuple(found)
        from copy import deepcopy

        return deepcopy(value)

    def _copied_tensor(self, tensor, path):
        known = self._cache.get(path)
        same = known is not None and known.shape == tensor.shape and known.dtype == tensor.dtype
        if same:
            known.copy_(tensor)
            return known
        copy = tensor.clone() if tensor.device.type == "cpu" else tensor.cpu()
        if self.cache_staged_state_dict and not hasattr(tensor, "device_mesh"):
            self._cache[path] = copy
        return copy
