"""What makes a batch of items."""

from __future__ import annotations

from facula.utils.data._utils.collate import default_collate, default_convert  # noqa: F401
