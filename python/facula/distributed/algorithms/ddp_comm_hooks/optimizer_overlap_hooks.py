"""Communication hooks that update the parameters of a bucket as soon as it has been averaged."""

from __future__ import annotations

__all__ = []


class _OptimizerHookState:
    """The optimizer of `_hook_then_optimizer`.

    Args:
        functional_optim: of `as_functional_optim`.
        params (iterable of Parameter): those to update; default all.

    Raises:
        ValueError: it has no step_param().
    """

    def __init__(self, functional_optim, params=None):
        if not hasattr(functional_optim, "step_param"):
            raise ValueError(
                "_OptimizerHookState(): expected an optimizer with step_param(); got "
                f"{type(functional_optim).__name__}"
            )
        self.functional_optimizer = functional_optim
        self.params_to_optimize = None if params is None else set(params)

    def wants(self, param):
        """Whether a parameter is to be updated."""
        return self.params_to_optimize is None or param in self.params_to_optimize


def _hook_then_optimizer(hook, optimizer_state):
    """A hook that communicates as another one, and updates parameters then.

    Args:
        hook (callable): averages the gradients of a bucket.
        optimizer_state (_OptimizerHookState): the optimizer.
    """

    def hooked(hook_state, bucket):
        def update(done):
            value = done.value()
            (value,) = value if isinstance(value, (list, tuple)) else (value,)
            bucket.set_buffer(value)
            for gradient, param in zip(bucket.gradients(), bucket.parameters(), strict=True):
                if optimizer_state.wants(param):
                    optimizer_state.functional_optimizer.step_param(param, gradient)
            return value

        return hook(hook_state, bucket).then(update)

    return hooked
