"""Fake tensors: sizes, strides, dtype and device of a tensor, without its memory."""

from __future__ import annotations

from facula._subclasses.fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
