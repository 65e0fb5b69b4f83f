"""An optimizer that averages the model over ranks now and then."""

from __future__ import annotations

import warnings

from facula.optim import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Steps of an optimizer on each rank alone, followed by an average of the model when it is due.

    See `distributed.algorithms.ddp_comm_hooks.post_localSGD_hook` (Lin et al., 2018).

    Args:
        optim (Optimizer): makes the steps.
        averager (ModelAverager): decides when models are averaged.
    """

    def __init__(self, optim, averager):
        self.optim, self.averager = optim, averager
        self.param_groups = optim.param_groups

    @property
    def state(self):
        """The state of the optimizer."""
        return self.optim.state

    def __repr__(self):
        return repr(self.optim)

    def state_dict(self):
        """The state of the optimizer, and the averager's step as "step"."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict):
        """Take the state of the optimizer and the averager's step; a missing step is told."""
        self.optim.load_state_dict({k: v for k, v in state_dict.items() if k != "step"})
        self.param_groups = self.optim.param_groups
        if "step" not in state_dict:
            warnings.warn(
                "PostLocalSGDOptimizer: state_dict has no 'step', so the averager begins at 0",
                stacklevel=2,
            )
        self.averager.step = state_dict.get("step", 0)

    def step(self, closure=None):
        """Make a step, then average the model if it is due.

        Args:
            closure (callable): computes the loss again.

        Returns:
            the result of `closure`, or None
        """
        loss = self.optim.step() if closure is None else self.optim.step(closure)
        self.averager.average_parameters(self.param_groups)
        return loss

    def zero_grad(self, set_to_none=True):
        """Forget the gradients."""
        self.optim.zero_grad(set_to_none)

    def add_param_group(self, param_group):
        """Add a group to the optimizer."""
        self.optim.add_param_group(param_group)
