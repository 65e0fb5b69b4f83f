"""`facula.autocast` for the CPU, by its name of old."""

from __future__ import annotations

import facula


class autocast(facula.amp.autocast):
    """Context manager and decorator: `facula.amp.autocast("cpu", ...)`."""

    def __init__(self, enabled=True, dtype=facula.bfloat16, cache_enabled=True):
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
