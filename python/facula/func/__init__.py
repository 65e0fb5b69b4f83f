"""Transforms of functions: derivatives, batching, functionalization."""
from facula.func._functionalize import functionalize
from facula.func._grad import (
    grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp)
from facula.func._modules import functional_call, stack_module_state
from facula.func._vmap import vmap

__all__ = ["functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev",
           "jvp", "linearize", "stack_module_state", "vjp", "vmap"]
