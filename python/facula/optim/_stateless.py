"""An optimizer that works for a while on other parameters and state."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager


@contextmanager
def swap_in_optimizer_params_and_state(optimizer, swapin_parameters, swapin_optim_state):
    """A context in which `optimizer` has other parameters, settings and state.

    Args:
        optimizer: an Optimizer that has state already.
        swapin_parameters: dict from name to Tensor, in the order of the optimizer's parameters.
        swapin_optim_state: dict as `optimizer.state_dict()` gives it. Its tensors are changed in
            place; whatever else a step sets is dropped at the end.

    Raises:
        RuntimeError: no state yet, or parameters or state that do not fit the optimizer.

    Example:
        >>> w = facula.ones(1, requires_grad=True)
        >>> opt = facula.optim.Adam([w], lr=1.0)
        >>> w.grad = facula.ones(1)
        >>> opt.step()
        >>> other = facula.zeros(1)
        >>> other.grad = facula.ones(1)
        >>> with facula.optim.swap_in_optimizer_params_and_state(
        ...     opt, {"w": other}, opt.state_dict()
        ... ):
        ...     opt.step()
        >>> other.item()
        -1.0
    """
    if not optimizer.state:
        raise RuntimeError(
            "swap_in_optimizer_params_and_state(): the optimizer must have state; got one "
            "before its first step"
        )
    groups, params = _groups(optimizer, list(swapin_parameters.values()), swapin_optim_state)
    state = _state(params, swapin_optim_state["state"])
    kept = optimizer.param_groups, optimizer.state
    optimizer.param_groups, optimizer.state = groups, state
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = kept


def _groups(optimizer, tensors, saved):
    """Groups of the new parameters with the settings of `saved`; also {number: parameter}."""
    if len(saved["param_groups"]) != len(optimizer.param_groups):
        raise RuntimeError(
            "swap_in_optimizer_params_and_state(): expected "
            f"{len(optimizer.param_groups)} parameter groups; got {len(saved['param_groups'])}"
        )
    left, groups, params = iter(tensors), [], {}
    for ours, theirs in zip(optimizer.param_groups, saved["param_groups"], strict=True):
        chosen = [tensor for _, tensor in zip(theirs["params"], left, strict=False)]
        if not len(chosen) == len(theirs["params"]) == len(ours["params"]):
            raise RuntimeError(
                "swap_in_optimizer_params_and_state(): parameters must be those of the "
                f"optimizer, in its order; got {len(chosen)} for a group of "
                f"{len(ours['params'])}"
            )
        params.update(zip(theirs["params"], chosen, strict=True))
        groups.append({**ours, **theirs, "params": chosen})
    return groups, params


def _state(params, saved):
    unknown = [key for key in saved if key not in params]
    if unknown:
        raise RuntimeError(
            "swap_in_optimizer_params_and_state(): state must have the numbers of "
            f"parameters as keys; got {unknown}"
        )
    state = defaultdict(dict)
    for key, value in saved.items():
        state[params[key]] = dict(value) if isinstance(value, dict) else value
    return state
