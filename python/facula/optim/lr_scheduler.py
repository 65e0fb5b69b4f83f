"""Schedulers: they change the learning rate of an optimizer as training goes on."""

from __future__ import annotations

from facula.optim._schedule_base import (  # noqa: F401  (public names of this module)
    EPOCH_DEPRECATION_WARNING,
    ChainedScheduler,
    LRScheduler,
    SequentialLR,
    _enable_get_lr_call,
    _LRScheduler,
    _warn_get_lr_called_within_step,
)
from facula.optim._schedules import (  # noqa: F401
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from facula.optim._schedules_cyclic import CyclicLR, OneCycleLR  # noqa: F401
from facula.optim._schedules_plateau import ReduceLROnPlateau  # noqa: F401

__all__ = [
    "LambdaLR",
    "MultiplicativeLR",
    "StepLR",
    "MultiStepLR",
    "ConstantLR",
    "LinearLR",
    "ExponentialLR",
    "SequentialLR",
    "CosineAnnealingLR",
    "ChainedScheduler",
    "ReduceLROnPlateau",
    "CyclicLR",
    "CosineAnnealingWarmRestarts",
    "OneCycleLR",
    "PolynomialLR",
    "LRScheduler",
]
for _name in (*__all__, "_LRScheduler"):
    # Pickles name this module, not the files behind it.
    globals()[_name].__module__ = __name__
