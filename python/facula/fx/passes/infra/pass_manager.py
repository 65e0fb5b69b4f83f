"""Passes in an order that keeps to rules, one after another."""

from __future__ import annotations

import functools
import inspect
import logging
from queue import Queue

import facula
from facula.fx.graph_module import GraphModule
from facula.fx.passes.infra.pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

logger = logging.getLogger(__name__)


def _name_of(function):
    return function.__name__ if inspect.isfunction(function) else type(function).__name__


def pass_result_wrapper(fn):
    """A function that gives a PassResult where another changes a module in place.

    Args:
        fn (callable): takes a GraphModule; gives None or a PassResult.

    Returns:
        callable | None: None for None.
    """
    if fn is None:
        return None

    @functools.wraps(fn)
    def call(gm):
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        if isinstance(result, PassResult):
            return result
        if isinstance(result, facula.nn.Module):
            return PassResult(result, True)
        return None

    if not inspect.isfunction(fn):
        call.__name__ = type(fn).__name__
    return call


def _check_constraints(constraint, passes):
    for i, first in enumerate(passes):
        for second in passes[i + 1 :]:
            if not constraint(first, second):
                raise RuntimeError(
                    f"PassManager: {_name_of(second)} must not come after {_name_of(first)}"
                )


def this_before_that_pass_constraint(this, that):
    """The rule that one pass comes before another.

    Args:
        this, that (callable): the passes.

    Returns:
        callable: of two passes in their order, whether it keeps to the rule.
    """

    def depends_on(a, b):
        return a is not that or b is not this

    return depends_on


def _topological_sort_passes(passes, constraints):
    """The passes in an order that keeps to all rules; RuntimeError where there is none."""
    if not constraints:
        return passes
    later = {
        a: [b for b in passes if b is not a and not all(rule(b, a) for rule in constraints)]
        for a in passes
    }
    waiting = dict.fromkeys(passes, 0)
    for followers in later.values():
        for follower in followers:
            waiting[follower] += 1
    ready, ordered = Queue(), []
    for item in passes:
        if not waiting[item]:
            ready.put(item)
    while not ready.empty():
        item = ready.get()
        ordered.append(item)
        for follower in later[item]:
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.put(follower)
    if len(ordered) < len(passes):
        left = ", ".join(_name_of(item) for item in passes if item not in ordered)
        raise RuntimeError(f"PassManager: constraints must have no cycle; got one among {left}")
    return ordered


class PassManager:
    """Runs passes one after another, `steps` times or until nothing changes.

    Args:
        passes (list[callable]): each takes a GraphModule and gives a PassResult.
        constraints (list[callable]): of two passes in their order, whether it may be.
        steps (int): how often at most.
        run_checks_after_each_pass (bool): whether the checks run after each, or at the end.
        suppress_check_failures (bool): whether a pass may give something else than a PassResult.

    Example:
        >>> def relus(gm):
        ...     for node in gm.graph.nodes:
        ...         node.target = facula.sigmoid if node.target is facula.relu else node.target
        >>> manager = PassManager([pass_result_wrapper(relus)])
        >>> result = manager(facula.fx.symbolic_trace(lambda x: facula.relu(x)))
        >>> "facula.sigmoid(x)" in result.graph_module.code
        True
    """

    def __init__(
        self,
        passes=None,
        constraints=None,
        steps=None,
        run_checks_after_each_pass=False,
        suppress_check_failures=False,
    ):
        self.passes, self.constraints = passes or [], constraints or []
        self.steps = 1 if steps is None else steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass):
        """Add a pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint):
        """Add a rule of order."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self):
        """Check that the order keeps to the rules; RuntimeError where it does not."""
        if not self._validated:
            for constraint in self.constraints:
                _check_constraints(constraint, self.passes)
            self._validated = True

    def solve_constraints(self):
        """Put the passes in an order that keeps to the rules; RuntimeError where there is none."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check):
        """Take a function of a module that raises where something is wrong.

        Raises:
            ValueError: it does not take one argument.
        """
        parameters = inspect.signature(check).parameters
        if len(parameters) != 1:
            raise ValueError(
                f"add_checks(): check must take a module alone; got {list(parameters)}"
            )
        self.check = check

    def check(self, module):
        """Raise where something is wrong with a module; `add_checks` replaces it."""

    def __call__(self, module):
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        is_changed = False
        for _ in range(self.steps):
            changed_now = False
            for i, item in enumerate(self.passes):
                module, changed = self._run(item, i, module)
                changed_now = changed_now or changed
                if self.run_checks_after_each_pass:
                    self.check(module)
            is_changed = is_changed or changed_now
            if not changed_now:
                break
        self.check(module)
        return PassResult(module, is_changed)

    def _run(self, item, i, module):
        name = _name_of(item)
        logger.debug("Running pass %s", name)
        try:
            result = item(module)
            if not isinstance(result, PassResult) and not self.suppress_check_failures:
                raise TypeError(
                    f"PassManager: {name} must give a PassResult; got {type(result).__name__}. "
                    "pass_result_wrapper() helps"
                )
        except Exception as error:
            done = [_name_of(p) for p in self.passes[:i]]
            raise Exception(f"PassManager: {name} failed after {done}") from error  # noqa: TRY002
        if not isinstance(result, PassResult):
            return module, False
        module = result.graph_module
        if isinstance(module, GraphModule):
            module.recompile()
        return module, result.modified
