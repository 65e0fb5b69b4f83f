"""L-BFGS, with a line search for the strong Wolfe conditions."""

from __future__ import annotations

from typing import Any, NamedTuple

import facula
from facula.optim.optimizer import Optimizer, _check_lr

_SUFFICIENT_DECREASE = 1e-4
_CURVATURE = 0.9
# Pairs of less curvature than this would make the inverse Hessian indefinite by rounding.
_LEAST_CURVATURE = 1e-10


class LBFGS(Optimizer):
    """L-BFGS: quasi-Newton steps from the last changes of parameters and gradient.

    Nocedal and Wright, Numerical Optimization, algorithms 7.4 and 7.5, and for the line search
    3.5 and 3.6 with cubic interpolation.

    Args:
        params: iterable of parameters; one group only.
        lr: step size, and first trial of the line search.
        max_iter: iterations of a step.
        max_eval: evaluations of the closure in a step; `max_iter * 5 // 4` when None.
        tolerance_grad: stop when no element of the gradient is larger.
        tolerance_change: stop when neither loss nor parameters change more.
        history_size: how many changes are kept.
        line_search_fn: "strong_wolfe" or None for a fixed step size.
        maximize: climb instead of descend.

    Raises:
        ValueError: several groups.
        RuntimeError: another line search, when stepping.

    Example:
        >>> x = facula.tensor([1.0, 2.0], requires_grad=True)
        >>> opt = facula.optim.LBFGS([x], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     opt.zero_grad()
        ...     loss = (x * x).sum()
        ...     loss.backward()
        ...     return loss
        >>> opt.step(closure).item()
        5.0
        >>> x.abs().max().item() < 1e-6
        True
    """

    def __init__(
        self,
        params,
        lr: float | facula.Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ) -> None:
        _check_lr(lr, False)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError(
                f"LBFGS: params must form one parameter group; got {len(self.param_groups)}"
            )
        self._params = self.param_groups[0]["params"]
        self._numel_cache = None

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("maximize", False)
        self._params = self.param_groups[0]["params"]
        self._numel_cache = None

    def _numel(self):
        if self._numel_cache is None:
            self._numel_cache = sum(p.numel() * (1 + p.is_complex()) for p in self._params)
        return self._numel_cache

    def _gather_flat_grad(self):
        """The gradients of all parameters one after another; zeros where there is none."""
        parts = []
        for p in self._params:
            grad = p.grad
            if grad is None:
                grad = p.new_zeros(p.shape)
            elif grad.is_sparse:
                grad = grad.to_dense()
            if grad.is_complex():
                grad = facula.view_as_real(grad)
            parts.append(grad.reshape(-1))
        flat = facula.cat(parts, 0)
        return -flat if self.param_groups[0]["maximize"] else flat

    def _add_grad(self, step_size, update):
        """Add `step_size * update` to the parameters, in place."""
        start = 0
        for p in self._params:
            p = facula.view_as_real(p) if p.is_complex() else p
            p.add_(update[start : start + p.numel()].view_as(p), alpha=step_size)
            start += p.numel()

    def _clone_param(self):
        return [p.clone(memory_format=facula.contiguous_format) for p in self._params]

    def _set_param(self, params_data):
        for p, value in zip(self._params, params_data, strict=True):
            p.copy_(value)

    def _loss(self, closure):
        loss = float(closure())
        return -loss if self.param_groups[0]["maximize"] else loss

    def _directional_evaluate(self, closure, x, t, d):
        """Loss and gradient at x + t * d; the parameters are x again afterwards."""
        self._add_grad(t, d)
        loss = self._loss(closure)
        grad = self._gather_flat_grad()
        self._set_param(x)
        return loss, grad

    @facula.no_grad()
    def step(self, closure):
        """Take up to `max_iter` steps.

        Args:
            closure: clears the gradients, computes the loss and its gradients, returns the loss.

        Returns:
            The loss before the first of them.
        """
        closure = facula.enable_grad()(closure)
        group = self.param_groups[0]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss = -float(first_loss) if group["maximize"] else float(first_loss)
        state["func_evals"] += 1
        grad = self._gather_flat_grad()
        if _is_flat(grad, group):
            return first_loss
        self._iterate(closure, group, state, loss, grad)
        return first_loss

    def _iterate(self, closure, group, state, loss, grad):
        evaluations, done, search = 1, 0, group["line_search_fn"]
        while done < group["max_iter"]:
            done += 1
            state["n_iter"] += 1
            d = _direction(state, grad, group["history_size"])
            state["d"] = d
            state["prev_flat_grad"] = grad.clone(memory_format=facula.contiguous_format)
            previous = state["prev_loss"] = loss
            t = group["lr"]
            if state["n_iter"] == 1:
                t = min(1.0, 1.0 / grad.abs().sum()) * group["lr"]
            state["t"] = t
            slope = grad.dot(d)
            if slope > -group["tolerance_change"]:
                break
            is_last = done == group["max_iter"]
            left = 0 if is_last and search is None else group["max_eval"] - evaluations
            t, loss, grad, used = self._move(closure, search, t, d, (loss, grad, slope), left)
            state["t"] = t
            evaluations += used
            state["func_evals"] += used
            if (
                is_last
                or evaluations >= group["max_eval"]
                or (used and _is_flat(grad, group))
                or d.mul(t).abs().max() <= group["tolerance_change"]
                or abs(loss - previous) < group["tolerance_change"]
            ):
                break

    def _move(self, closure, search, t, d, here, left):
        """Go along `d`; returns step size, loss, gradient and the number of evaluations.

        Args:
            search: name of the line search or None. t: first step size.
            here: loss, gradient and slope before. left: how many evaluations are left, 0 after
                the last iteration, when nobody looks at the loss any more.
        """
        if search is None:
            self._add_grad(t, d)
            if not left:
                return t, *here[:2], 0
            return t, self._loss(closure), self._gather_flat_grad(), 1
        if search != "strong_wolfe":
            raise RuntimeError(f"LBFGS: line_search_fn must be 'strong_wolfe'; got {search!r}")
        x = self._clone_param()

        def evaluate(t):
            return self._directional_evaluate(closure, x, t, d)

        best, used = _strong_wolfe(evaluate, t, d, *here, left)
        self._add_grad(best.t, d)
        return best.t, best.loss, best.grad, used


def _is_flat(grad, group):
    return bool(grad.abs().max() <= group["tolerance_grad"])


def _direction(state, grad, history_size):
    """The next direction; adds the last change to the history in `state`."""
    if state["n_iter"] == 1:
        state["old_dirs"], state["old_stps"], state["ro"] = [], [], []
        state["H_diag"] = 1
        return grad.neg()
    changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
    change = grad.sub(state["prev_flat_grad"])
    step = state["d"].mul(state["t"])
    curvature = change.dot(step)
    if curvature > _LEAST_CURVATURE:
        if len(changes) == history_size:
            for table in (changes, steps, inverses):
                table.pop(0)
        changes.append(change)
        steps.append(step)
        inverses.append(1.0 / curvature)
        state["H_diag"] = curvature / change.dot(change)
    # The two loops over the history: newest first, then oldest first.
    direction = grad.neg()
    parts = state["al"] = [None] * history_size
    for i in range(len(changes) - 1, -1, -1):
        parts[i] = steps[i].dot(direction) * inverses[i]
        direction.add_(changes[i], alpha=-parts[i])
    direction = direction.mul(state["H_diag"])
    for i in range(len(changes)):
        back = changes[i].dot(direction) * inverses[i]
        direction.add_(steps[i], alpha=parts[i] - back)
    return direction


class _Trial(NamedTuple):
    """A point of the line: its distance, and loss, gradient and slope there."""

    t: Any
    loss: float
    grad: Any
    slope: Any


def _cubic_minimum(a, b, bounds=None):
    """Where the cubic through two trials with their slopes is least, held to `bounds`."""
    low, high = bounds or ((a.t, b.t) if a.t <= b.t else (b.t, a.t))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    if a.t > b.t:
        a, b = b, a
    where = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(where, low), high)


def _strong_wolfe(evaluate, t, d, loss, grad, slope, most, tolerance_change=1e-9):
    """A point on the line that fulfils the strong Wolfe conditions, or the best one found.

    Args:
        evaluate: function from a distance to loss and gradient.
        t: the first distance. d: the direction. loss, grad, slope: at distance 0.
        most: after so many trials beside the first the best one so far is taken.

    Returns:
        A _Trial and the number of evaluations.
    """

    def trial(t):
        new_loss, new_grad = evaluate(t)
        return _Trial(t, new_loss, new_grad, new_grad.dot(d))

    def too_high(point):
        return point.loss > loss + _SUFFICIENT_DECREASE * point.t * slope

    def is_flat_enough(point):
        return abs(point.slope) <= -_CURVATURE * slope

    start = _Trial(0, loss, grad.clone(memory_format=facula.contiguous_format), slope)
    before, new, rounds = start, trial(t), 0
    while rounds < most:
        if too_high(new) or (rounds > 1 and new.loss >= before.loss):
            break
        if is_flat_enough(new):
            return new, rounds + 1
        if new.slope >= 0:
            break
        bounds = (new.t + 0.01 * (new.t - before.t), new.t * 10)
        before, new = new, trial(_cubic_minimum(before, new, bounds))
        rounds += 1
    else:
        return (start if start.loss <= new.loss else new), rounds + 1
    shortest = tolerance_change / d.abs().max()
    return _zoom(trial, [before, new], rounds, most, too_high, is_flat_enough, shortest)


def _zoom(trial, bracket, rounds, most, too_high, is_flat_enough, shortest):
    """Shrink a bracket that holds a good point; returns a _Trial and the evaluations."""
    was_near_the_end = False
    evaluations = rounds + 1
    low = 0 if bracket[0].loss <= bracket[1].loss else 1
    while rounds < most:
        if abs(bracket[1].t - bracket[0].t) < shortest:
            break
        t = _cubic_minimum(*bracket)
        left, right = sorted(point.t for point in bracket)
        margin = 0.1 * (right - left)
        is_near_the_end = bool(min(right - t, t - left) < margin)
        if is_near_the_end and (was_near_the_end or t >= right or t <= left):
            t = right - margin if abs(t - right) < abs(t - left) else left + margin
            is_near_the_end = False
        was_near_the_end = is_near_the_end
        new = trial(t)
        evaluations += 1
        rounds += 1
        if too_high(new) or new.loss >= bracket[low].loss:
            bracket[1 - low] = new
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        is_done = is_flat_enough(new)
        if not is_done and new.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = new
        if is_done:
            break
    return bracket[low], evaluations
