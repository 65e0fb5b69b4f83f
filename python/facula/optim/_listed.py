"""The base of optimizers whose step is written once over lists of tensors."""

from __future__ import annotations

import facula
from facula.optim import _lists
from facula.optim.optimizer import Optimizer, _check_flags, _new_step, _step_dtype, _value

_DEFAULTS = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}


def _zeros(param):
    return facula.zeros_like(param, memory_format=facula.preserve_format)


class ListOptimizer(Optimizer):
    """Collects parameters, gradients and state by name, and hands them to `_update`.

    A subclass gives `_buffers(group)`, the names of its state tensors, and
    `_update(group, ops, counts, params, grads, *buffers)`, where `ops` does list operations and
    `counts` are the numbers of the step.
    """

    _takes_sparse = False
    _later_settings = {}

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (_DEFAULTS | self._later_settings).items():
                if name in self.defaults:
                    group.setdefault(name, value)
            for p in group["params"]:
                saved = self.state.get(p)
                if saved and not isinstance(saved["step"], facula.Tensor):
                    saved["step"] = facula.tensor(float(saved["step"]), dtype=_step_dtype())

    def _new_state(self, group, param, grad):
        """The state of a parameter before its first step; returns a dict."""
        state = {"step": _new_step()}
        state.update((name, _zeros(param)) for name in self._buffers(group))
        return state

    def step(self, closure=None):
        """Change the parameters once; returns the loss of `closure`, or None."""
        loss = self._evaluate(closure)
        with facula.set_grad_enabled(
            self.defaults.get("differentiable", False) and facula.is_grad_enabled()
        ):
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _step_group(self, group):
        params, grads, states = [], [], []
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            if grad.is_sparse and not self._takes_sparse:
                raise RuntimeError(
                    f"{type(self).__name__}: gradients must be dense; got a sparse one"
                )
            state = self.state[p]
            if not state:
                state.update(self._new_state(group, p, grad))
            params.append(p)
            grads.append(grad)
            states.append(state)
        if not params:
            return
        _check_flags(group, params)
        names = self._buffers(group)
        lists = (params, grads, states)
        for ps, gs, some in _lists.split_by_kind(*lists):
            self._step_kind(group, ps, gs, some, names)

    def _step_kind(self, group, params, grads, states, names):
        differentiable = group.get("differentiable", False)
        ops = _lists.backend(params, grads, differentiable)
        steps = [state["step"] for state in states]
        facula._foreach_add_(steps, 1)
        counts = [_value(step) for step in steps]
        buffers = [[state[name] for state in states] for name in names]
        if group["maximize"]:
            grads = ops.neg(grads)
        decay = group.get("weight_decay", 0)
        if decay and not group.get("decoupled_weight_decay", False):
            grads = ops.add(grads, params, alpha=decay)
        lists = [params, grads, *buffers]
        if params[0].is_complex():
            lists = _lists.view_as_real(*lists)
        self._update(group, ops, counts, *lists)


def lr_of(group):
    """The learning rate as a number, or as a tensor when the step is differentiated."""
    lr = group["lr"]
    return lr if group.get("differentiable", False) else _value(lr)


def kept(ops, tensors):
    """`tensors`, copied when later steps must not change what a gradient needs."""
    return [t.clone() for t in tensors] if ops is _lists.LOOP else tensors
