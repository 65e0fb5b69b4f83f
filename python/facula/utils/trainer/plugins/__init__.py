"""Plugins of a Trainer: what they measure goes into its `stats`, and a logger prints it."""

from facula.utils.trainer.plugins.logger import Logger
from facula.utils.trainer.plugins.monitor import (
    AccuracyMonitor,
    LossMonitor,
    Monitor,
    ProgressMonitor,
    TimeMonitor,
)
from facula.utils.trainer.plugins.plugin import UNITS, Plugin

__all__ = [
    "AccuracyMonitor",
    "Logger",
    "LossMonitor",
    "Monitor",
    "Plugin",
    "ProgressMonitor",
    "TimeMonitor",
]
