"""Automatic mixed precision on the CPU, as it was called before `facula.amp`."""

from facula.cpu.amp.autocast_mode import autocast
from facula.cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
