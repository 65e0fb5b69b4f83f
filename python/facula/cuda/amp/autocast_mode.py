"""`facula.amp` for CUDA, under its names of old."""

from __future__ import annotations

import functools

import facula


class autocast(facula.amp.autocast):
    """Context manager and decorator: `facula.amp.autocast("cuda", ...)`; off without a device."""

    def __init__(self, enabled=True, dtype=facula.float16, cache_enabled=True):
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """`facula.amp.custom_fwd` for CUDA."""
    return functools.partial(facula.amp.custom_fwd, device_type="cuda")(
        fwd, cast_inputs=cast_inputs
    )


def custom_bwd(bwd):
    """`facula.amp.custom_bwd` for CUDA."""
    return facula.amp.custom_bwd(bwd, device_type="cuda")
