"""What goes wrong with checkpoints."""

from __future__ import annotations

import traceback

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """Some ranks could not save or load; all ranks raise this.

    Args:
        msg (str): the step that failed.
        failures (dict): rank -> (exception, summary of its traceback).
    """

    def __init__(self, msg, failures):
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self):
        """dict: rank -> (exception, summary of its traceback)"""
        return self._failures

    def __str__(self):
        lines = [f"CheckpointException ranks:{self._failures.keys()}"]
        for rank, (error, summary) in self._failures.items():
            lines.append(f"Traceback (most recent call last): (RANK {rank})")
            lines += [line.rstrip() for line in traceback.format_list(summary)]
            lines += [line.rstrip() for line in traceback.format_exception_only(error)]
        return "\n".join(lines) + "\n"
