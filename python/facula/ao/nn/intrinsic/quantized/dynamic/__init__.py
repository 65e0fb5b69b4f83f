"""Fused modules of floats with quantized weights."""

from .modules import *  # noqa: F403
