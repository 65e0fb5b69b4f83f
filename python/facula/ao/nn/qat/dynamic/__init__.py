"""Modules that train for dynamic quantization."""

from .modules import *  # noqa: F403
