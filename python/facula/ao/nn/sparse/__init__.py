"""Modules whose weights are mostly zeros."""

from . import quantized  # noqa: F401

__all__ = ["quantized"]
