"""Modules of floats with quantized weights; inputs are quantized by their own range."""

from . import modules  # noqa: F401
from .modules import *  # noqa: F403
from .modules import __all__  # noqa: F401
