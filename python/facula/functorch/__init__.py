"""The names that the package functorch had: transforms of functions, and `functorch.compile`."""

from __future__ import annotations

from facula import _missing
from facula._functorch.make_functional import (
    FunctionalModule,
    FunctionalModuleWithBuffers,
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)
from facula.func import (
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    vjp,
    vmap,
)

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "make_fx",
    "vjp",
    "vmap",
]


def __getattr__(name):
    if name == "make_fx":
        from facula.fx.experimental.proxy_tensor import make_fx

        return make_fx
    return _missing.submodule(__name__, name)
