"""The place that `facula.distributed.tensor.placement_types` had before."""

from facula.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta  # noqa: F401
from facula.distributed.tensor.placement_types import *  # noqa: F403
