"""MIOpen: this build has none. Its flag is kept for programs that set it."""

from facula.backends import _flags

_flags.install(__name__, {"immediate": False}, {"immediate": False})
