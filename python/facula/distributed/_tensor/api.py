"""The place that `facula.distributed.tensor._api` had before."""

from facula.distributed.tensor import *  # noqa: F403
