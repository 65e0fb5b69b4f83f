"""checkpoint: a module that computes its activations again in backward."""

from __future__ import annotations

import functools

from facula.distributed._composable.contract import contract
from facula.utils import checkpoint as _checkpoint


def _forward(module, options, *args, **kwargs):
    call = functools.partial(type(module).forward, module)
    return _checkpoint.checkpoint(call, *args, use_reentrant=False, **options, **kwargs)


@contract()
def checkpoint(module, **kwargs):
    """Have a module keep its inputs alone, and compute again in backward (Chen et al. 2016).

    Args:
        module (Module): changed in place.
        kwargs: context_fn, preserve_rng_state, determinism_check, debug and early_stop, as for
            `facula.utils.checkpoint.checkpoint`.

    Returns:
        Module: the same

    Raises:
        ValueError: another argument.

    Example:
        >>> layer = checkpoint(facula.nn.Linear(2, 1))
        >>> layer(facula.ones(1, 2)).sum().backward()
        >>> layer.weight.grad
        tensor([[1., 1.]])
    """
    known = {"context_fn", "preserve_rng_state", "determinism_check", "debug", "early_stop"}
    if set(kwargs) - known:
        raise ValueError(f"checkpoint(): expected {sorted(known)}; got {sorted(kwargs)}")
    # A partial, so that a deep copy of the module has one of its own.
    object.__setattr__(module, "forward", functools.partial(_forward, module, kwargs))
    return module


__all__ = ["checkpoint"]
