"""Fused modules that train with fake-quantized weights."""

from . import modules  # noqa: F401
from .modules import *  # noqa: F403
