"""Plugins that measure one figure of each batch."""

from __future__ import annotations

import time

from facula.utils.trainer.plugins.plugin import Plugin


class Monitor(Plugin):
    """Measures a figure of each batch; a subclass has `stat_name` and `_get_value`.

    `trainer.stats[stat_name]` gets the figure as "last", its mean over the epoch as "epoch_mean",
    and, where asked for, a mean in which older figures count less and less as "running_avg".

    Args:
        running_average (bool): whether there is a running average.
        epoch_average (bool): whether there is a mean over each epoch.
        smoothing (float): how much the newest figure counts in the running average.
        precision (int): digits after the point where a Logger prints it.
        number_format (str): the format instead, as "{:.2f}".
        unit (str): what stands after the figure.
    """

    stat_name = "figure"

    def __init__(
        self,
        running_average=True,
        epoch_average=True,
        smoothing=0.7,
        precision=None,
        number_format=None,
        unit="",
    ):
        super().__init__([(1, "iteration"), (1, "epoch")])
        self.smoothing = smoothing
        self.with_running_average = running_average
        self.with_epoch_average = epoch_average
        self.log_format = number_format or f"{{:.{4 if precision is None else precision}f}}"
        self.log_unit = unit

    def register(self, trainer):
        """Makes the figure's place in the trainer's stats."""
        super().register(trainer)
        running = ["running_avg"] if self.with_running_average else []
        self.stats = trainer.stats.setdefault(self.stat_name, {})
        self.stats.update(
            log_name=self.stat_name,
            log_format=self.log_format,
            log_unit=self.log_unit,
            log_iter_fields=["last", *running],
            log_epoch_fields=["epoch_mean"] if self.with_epoch_average else [],
        )
        self.total, self.count = 0, 0

    def iteration(self, time, input, target, output, loss):
        """Measures a batch."""
        value = self._get_value(time, input, target, output, loss)
        self.stats["last"] = value
        self.total, self.count = self.total + value, self.count + 1
        if self.with_running_average:
            before = self.stats.get("running_avg", value)
            self.stats["running_avg"] = before + self.smoothing * (value - before)

    def epoch(self, time):
        """Closes an epoch."""
        if self.with_epoch_average and self.count:
            self.stats["epoch_mean"] = self.total / self.count
        self.total, self.count = 0, 0

    def _get_value(self, time, input, target, output, loss):
        raise NotImplementedError(f"{type(self).__name__} has no _get_value()")


class LossMonitor(Monitor):
    """The loss."""

    stat_name = "loss"

    def _get_value(self, time, input, target, output, loss):
        return loss.item()


class AccuracyMonitor(Monitor):
    """The share of samples whose greatest output is at the target's place, in percent."""

    stat_name = "accuracy"

    def __init__(self, *args, **options):
        super().__init__(*args, **{"precision": 2, "unit": "%", **options})

    def _get_value(self, time, input, target, output, loss):
        return 100.0 * (output.argmax(1) == target).float().mean().item()


class TimeMonitor(Monitor):
    """The seconds from one batch to the next."""

    stat_name = "time"

    def __init__(self, *args, **options):
        super().__init__(*args, **{"unit": "s", **options})

    def register(self, trainer):
        """Starts the clock."""
        super().register(trainer)
        self.last_time = time.perf_counter()

    def _get_value(self, *batch):
        before, self.last_time = self.last_time, time.perf_counter()
        return self.last_time - before


class ProgressMonitor(Plugin):
    """How many samples of the epoch are done: "samples_used", "epoch_size", "percent"."""

    stat_name = "progress"

    def __init__(self):
        super().__init__([(1, "iteration"), (1, "epoch")])

    def register(self, trainer):
        """Makes the figures' place in the trainer's stats."""
        super().register(trainer)
        samples = getattr(trainer.dataset, "dataset", None)
        self.stats = trainer.stats.setdefault(self.stat_name, {})
        self.stats.update(
            samples_used=0,
            epoch_size=None if samples is None else len(samples),
            percent=0.0,
            log_name=self.stat_name,
            log_iter_fields=["samples_used", "percent"],
            log_epoch_fields=[],
            log_format="{:g}",
            log_unit="",
        )

    def iteration(self, time, input, target, output, loss):
        """Counts a batch."""
        first = input[0] if isinstance(input, (tuple, list)) else input
        self.stats["samples_used"] += len(first)
        if self.stats["epoch_size"]:
            self.stats["percent"] = 100.0 * self.stats["samples_used"] / self.stats["epoch_size"]

    def epoch(self, time):
        """Begins the next epoch's count."""
        self.stats.update(samples_used=0, percent=0.0)
