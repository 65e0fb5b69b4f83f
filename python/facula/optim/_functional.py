"""Old name of `facula.optim.functional`."""

from facula.optim.functional import *  # noqa: F403
