"""The types of what `facula.ops` holds, under the names that torch._ops gives them."""

from __future__ import annotations

from facula._C import OpOverload, OpOverloadPacket

__all__ = ["OpOverload", "OpOverloadPacket"]
