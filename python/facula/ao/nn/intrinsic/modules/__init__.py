"""The float modules that stand for several at once."""

from .fused import *  # noqa: F403
from .fused import __all__, _FusedModule  # noqa: F401
