"""Transforms of functions: derivatives, batching, functionalization."""

from facula.func._debug import debug_unwrap
from facula.func._functionalize import functionalize
from facula.func._grad import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from facula.func._modules import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from facula.func._rearrange import rearrange
from facula.func._vmap import vmap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
