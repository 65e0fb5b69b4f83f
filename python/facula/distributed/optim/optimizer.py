"""An optimizer of parameters that several workers of rpc own."""

from __future__ import annotations

import threading

import facula
from facula.distributed import autograd as dist_autograd
from facula.distributed import rpc

__all__ = ["DistributedOptimizer"]


class _LocalOptimizer:
    """Steps the parameters of one worker.

    Args:
        optimizer_class (type): of `facula.optim`.
        parameters (list of RRef): of this worker.
    """

    # Several trainers may step parameters of one worker: one after the other.
    lock = threading.Lock()

    def __init__(self, optimizer_class, parameters, *args, **kwargs):
        self._parameters = [rref.local_value() for rref in parameters]
        self.optim = optimizer_class(self._parameters, *args, **kwargs)

    def step(self, context_id):
        """One step with the gradients of a context of `distributed.autograd`."""
        grads = dist_autograd.get_gradients(context_id)
        with _LocalOptimizer.lock:
            before = [p.grad for p in self._parameters]
            try:
                for parameter in self._parameters:
                    parameter.grad = grads.get(parameter)
                self.optim.step()
            finally:
                for parameter, grad in zip(self._parameters, before, strict=True):
                    parameter.grad = grad


class DistributedOptimizer:
    """An optimizer of parameters that several workers own: each steps its own.

    Args:
        optimizer_class (type): of `facula.optim`; one is made at each owner.
        params_rref (list of RRef): parameters.
        args, kwargs: further arguments of `optimizer_class`.

    Raises:
        TypeError: `optimizer_class` is no optimizer.
        ValueError: there are no parameters.

    Example:
        >>> from facula.distributed.optim import DistributedOptimizer
        >>> optimizer = DistributedOptimizer(facula.optim.SGD, rrefs, lr=0.1)  # doctest: +SKIP
        >>> with dist_autograd.context() as context_id:  # doctest: +SKIP
        ...     dist_autograd.backward(context_id, [loss])
        ...     optimizer.step(context_id)
    """

    def __init__(self, optimizer_class, params_rref, *args, **kwargs):
        is_optimizer = isinstance(optimizer_class, type) and issubclass(
            optimizer_class, facula.optim.Optimizer
        )
        if not is_optimizer:
            raise TypeError(
                "DistributedOptimizer(): expected a class of facula.optim; got "
                f"{getattr(optimizer_class, '__name__', optimizer_class)}"
            )
        by_owner = {}
        for rref in params_rref:
            by_owner.setdefault(rref.owner(), []).append(rref)
        if not by_owner:
            raise ValueError("DistributedOptimizer(): expected parameters; got none")
        self.is_functional_optim = False
        made = [
            rpc.remote(owner, _LocalOptimizer, (optimizer_class, rrefs, *args), kwargs)
            for owner, rrefs in by_owner.items()
        ]
        for rref in made:
            rref._get_future().wait()
            # What went wrong with the arguments is to be said here, not at the first step.
            rref._get_type()
        self.remote_optimizers = made

    def step(self, context_id):
        """Step all parameters.

        Args:
            context_id (int): of `distributed.autograd.context`, after `backward`.

        Raises:
            RuntimeError: a step has failed at an owner.
        """
        steps = [rref.rpc_async().step(context_id) for rref in self.remote_optimizers]
        facula.futures.wait_all(steps)
