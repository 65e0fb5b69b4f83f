"""How a scheduler knows whether the sparsifier made its step before."""

from __future__ import annotations

import functools
import warnings
import weakref


def count_steps(sparsifier):
    """Make `sparsifier.step` count its calls in `_step_count`; a second time changes nothing."""
    sparsifier._step_count = 0
    if hasattr(sparsifier.step, "_counted"):
        return
    method = type(sparsifier).step
    # A strong reference would make a cycle that only the collector frees.
    owner = weakref.ref(sparsifier)

    @functools.wraps(method)
    def step(*args, **kwargs):
        owner()._step_count += 1
        return method(owner(), *args, **kwargs)

    step._counted = True
    sparsifier.step = step


def warn_of_order(scheduler_steps, sparsifier, name):
    """Warn where a scheduler makes its first step before the sparsifier did.

    Args:
        scheduler_steps (int): steps that the scheduler made. sparsifier: see `count_steps`.
        name (str): what the sparsifier is called in the warning.
    """
    if scheduler_steps == 1 and sparsifier._step_count < 1:
        warnings.warn(
            f"scheduler.step() ran before {name}.step(): call {name}.step() first, or the first "
            "value of the schedule is skipped",
            UserWarning,
            stacklevel=3,
        )
