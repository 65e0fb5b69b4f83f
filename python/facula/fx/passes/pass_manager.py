"""Passes as functions from module to module, in an order that keeps to rules."""

from __future__ import annotations

import logging
from functools import wraps
from inspect import unwrap

__all__ = [
    "PassManager",
    "inplace_wrapper",
    "log_hook",
    "loop_pass",
    "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]

logger = logging.getLogger(__name__)


def inplace_wrapper(fn):
    """A function that returns its argument after another has changed it in place.

    Args:
        fn (callable): the other.
    """

    @wraps(fn)
    def call(gm):
        fn(gm)
        return gm

    return call


def log_hook(fn, level=logging.INFO):
    """A function that logs what another returns.

    Args:
        fn (callable): the other.
        level (int): of the log's lines.
    """

    @wraps(fn)
    def call(gm):
        result = fn(gm)
        logger.log(level, "Ran pass %s\t Return value: %s", fn, result)
        return result

    return call


def loop_pass(base_pass, n_iter=None, predicate=None):
    """A pass that runs another several times.

    Args:
        base_pass (callable): the other.
        n_iter (int): how often.
        predicate (callable): of what it gave, whether it runs again.

    Raises:
        AssertionError: both are given, or neither.
    """
    if (n_iter is None) == (predicate is None):
        raise AssertionError("loop_pass(): one of n_iter and predicate must be given")

    @wraps(base_pass)
    def call(source):
        output = source
        if n_iter is not None:
            for _ in range(n_iter):
                output = base_pass(output)
        else:
            while predicate(output):
                output = base_pass(output)
        return output

    return call


def _validate_pass_schedule_constraint(constraint, passes):
    for i, first in enumerate(passes):
        for second in passes[i + 1 :]:
            if not constraint(first, second):
                raise RuntimeError(f"PassManager: {second} must not come after {first}")


def this_before_that_pass_constraint(this, that):
    """The rule that one pass comes before another.

    Args:
        this, that (callable): the passes.
    """

    def depends_on(a, b):
        return a is not that or b is not this

    return depends_on


def these_before_those_pass_constraint(these, those):
    """The rule that one pass comes before another, however they are wrapped.

    Args:
        these, those (callable): the passes; wrappers of each count as it.
    """

    def depends_on(a, b):
        return unwrap(a) is not those or unwrap(b) is not these

    return depends_on


class PassManager:
    """Runs passes one after another.

    Args:
        passes (list[callable]): each takes what the one before gave.
        constraints (list[callable]): of two passes in their order, whether it may be.

    Example:
        >>> PassManager([lambda x: x + 1, lambda x: 2 * x])(3)
        8
    """

    def __init__(self, passes=None, constraints=None):
        self.passes, self.constraints = passes or [], constraints or []
        self._validated = False

    @classmethod
    def build_from_passlist(cls, passes):
        """A manager of these passes."""
        return cls(passes)

    def add_pass(self, _pass):
        """Add a pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint):
        """Add a rule of order."""
        self.constraints.append(constraint)
        self._validated = False

    def remove_pass(self, _passes):
        """Take passes out by their names; nothing happens for None."""
        if _passes is None:
            return
        self.passes = [p for p in self.passes if p.__name__ not in _passes]
        self._validated = False

    def replace_pass(self, _target, _replacement):
        """Put another pass in the place of those with a pass's name."""
        name = _target.__name__
        self.passes = [_replacement if p.__name__ == name else p for p in self.passes]
        self._validated = False

    def validate(self):
        """Check that the order keeps to the rules; RuntimeError where it does not."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
            self._validated = True

    def __call__(self, source):
        self.validate()
        output = source
        for item in self.passes:
            output = item(output)
        return output
