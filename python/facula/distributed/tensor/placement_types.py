"""How a DTensor lies on the dimensions of a mesh."""

from facula.distributed._planned import planned
from facula.distributed.tensor import Partial, Placement, Replicate, Shard  # noqa: F401

planned(globals(), "_StridedShard")
