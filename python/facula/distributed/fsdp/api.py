"""Sharded data parallel: names that packages import; what they do is to come."""

from facula.distributed._planned import planned

planned(
    globals(),
    "FullOptimStateDictConfig ShardedOptimStateDictConfig ShardedStateDictConfig StateDictType",
)
