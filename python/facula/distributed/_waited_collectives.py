"""Functional collectives that return when their data is there: for code that needs it at once."""

from __future__ import annotations

import functools

from facula.distributed import _functional_collectives as functional


def _waited(collective):
    @functools.wraps(collective)
    def call(*args, **kwargs):
        result = collective(*args, **kwargs)
        several = isinstance(result, list)
        return functional.wait_tensors(result) if several else functional.wait_tensor(result)

    return call


all_gather_into_tensor_coalesced = _waited(functional.all_gather_into_tensor_coalesced)
all_gather_tensor = _waited(functional.all_gather_tensor)
all_reduce = _waited(functional.all_reduce)
all_reduce_coalesced = _waited(functional.all_reduce_coalesced)
all_to_all_single = _waited(functional.all_to_all_single)
broadcast = _waited(functional.broadcast)
permute_tensor = _waited(functional.permute_tensor)
reduce_scatter_tensor = _waited(functional.reduce_scatter_tensor)
reduce_scatter_tensor_coalesced = _waited(functional.reduce_scatter_tensor_coalesced)
