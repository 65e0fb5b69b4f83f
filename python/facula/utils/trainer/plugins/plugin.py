"""What all plugins have in common."""

from __future__ import annotations

UNITS = ("iteration", "epoch", "batch", "update")


class Plugin:
    """Something that a Trainer calls now and then.

    A plugin has a method for each unit of its intervals: `iteration(time, input, target, output,
    loss)` after a batch, `epoch(time)` after an epoch, `batch(time, input, target)` before a batch,
    `update(time, model)` after the parameters have changed.

    Args:
        interval (list[tuple[int, str]]): how often it is called: every so many of a unit.

    Raises:
        ValueError: an interval below 1, or a unit that there is not.
    """

    def __init__(self, interval=None):
        self.trigger_interval = list(interval or [])
        for every, unit in self.trigger_interval:
            if every < 1 or unit not in UNITS:
                raise ValueError(
                    f"Plugin(): expected intervals (1 or more, one of {', '.join(UNITS)}); "
                    f"got ({every}, {unit!r})"
                )

    def register(self, trainer):
        """Takes note of the trainer that this plugin belongs to."""
        self.trainer = trainer
