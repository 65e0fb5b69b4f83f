"""The types of what `facula.ops` holds, under the names that torch._ops gives them."""

from __future__ import annotations

from facula._C import OpOverload, OpOverloadPacket
from facula._higher_order_ops._operator import HigherOrderOperator

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket"]
