"""Float modules that round their weights as quantized ones have them: what others may lower."""

from . import modules  # noqa: F401
from .modules import *  # noqa: F403
from .modules import __all__  # noqa: F401
