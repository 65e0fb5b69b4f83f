"""A plugin that prints what the others have found."""

from __future__ import annotations

from facula.utils.trainer.plugins.plugin import Plugin


class Logger(Plugin):
    """Prints figures of the trainer's stats, a line each time.

    Args:
        fields (list[str]): what to print: "loss" for a stat's fields that are meant for it, or
            "loss.last" for one field.
        interval (list[tuple[int, str]]): how often; after each batch and each epoch by default.
        write (callable): takes a line; `print` by default.

    Example:
        >>> from facula.utils.trainer import plugins
        >>> logger = plugins.Logger(["loss.last", "accuracy"], [(100, "iteration"), (1, "epoch")])
    """

    def __init__(self, fields, interval=None, write=print):
        super().__init__(interval or [(1, "iteration"), (1, "epoch")])
        self.fields = list(fields)
        self.write = write

    def iteration(self, time, *batch):
        """Prints the figures of a batch."""
        self._log("log_iter_fields", f"iteration {time}")

    def epoch(self, time):
        """Prints the figures of an epoch."""
        self._log("log_epoch_fields", f"epoch {time}")

    def _log(self, kind, head):
        parts = [part for field in self.fields for part in self._texts(field, kind)]
        if parts:
            self.write("\t".join([head, *parts]))

    def _texts(self, field, kind):
        """The figures of a field as texts; those that are not there yet are left out."""
        name, _, one = field.partition(".")
        stat = self.trainer.stats.get(name)
        if stat is None:
            known = ", ".join(sorted(self.trainer.stats)) or "none"
            raise KeyError(
                f"Logger(): expected a figure of the trainer's stats ({known}); got {name!r}"
            )
        for key in [one] if one else stat.get(kind, []):
            if key in stat:
                yield f"{name}.{key} {stat['log_format'].format(stat[key])}{stat['log_unit']}"
