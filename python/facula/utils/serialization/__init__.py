"""Settings of `save` and `load`: see `config`."""

from . import config

__all__ = ["config"]
