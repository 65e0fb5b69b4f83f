"""`facula.amp.GradScaler` for CUDA, by its name of old."""

from __future__ import annotations

import facula


class GradScaler(facula.amp.GradScaler):
    """`facula.amp.GradScaler("cuda", ...)`; it does nothing without a device."""

    def __init__(
        self,
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
