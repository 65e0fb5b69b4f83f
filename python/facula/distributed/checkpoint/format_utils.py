"""Sharded checkpoints: names that packages import; what they do is to come."""

from facula.distributed._planned import planned

planned(globals(), "_EmptyStateDictLoadPlanner")
