"""Old place of `facula.func.functional_call`."""

from __future__ import annotations

from facula.func import functional_call as _functional_call

__all__ = ["functional_call"]


def functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """Call a module with other parameters and buffers; `facula.func.functional_call`."""
    import warnings

    warnings.warn(
        "nn.utils.stateless.functional_call is deprecated; func.functional_call takes its place",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
