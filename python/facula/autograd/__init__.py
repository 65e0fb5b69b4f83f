"""Automatic differentiation."""
from __future__ import annotations

from facula import _C

_HOME = {
    "no_grad": "grad_mode", "enable_grad": "grad_mode", "set_grad_enabled": "grad_mode",
    "inference_mode": "grad_mode", "Function": "function", "FunctionCtx": "function",
    "once_differentiable": "function", "gradcheck": "gradcheck", "gradgradcheck": "gradcheck",
}


def _sequence(value):
    if value is None:
        return ()
    return (value,) if isinstance(value, _C.Tensor) else tuple(value)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False,
             grad_variables=None, inputs=None):
    """Accumulate the gradients of `tensors` into the leaves of their graph.

    Args:
        tensors (Tensor or sequence): the roots.
        grad_tensors (Tensor or sequence): cotangents; None for scalars.
        retain_graph (bool): keep the graph for another backward; default: create_graph.
        create_graph (bool): record the backward pass itself.
        inputs (Tensor or sequence): accumulate into these only.

    Raises:
        RuntimeError: a root that is no scalar has no cotangent, or needs no gradient.
    """
    roots = _sequence(tensors)
    if inputs is not None and len(_sequence(inputs)) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    cotangents = _sequence(grad_tensors if grad_tensors is not None else grad_variables)
    _check_lengths(roots, cotangents)
    retain = create_graph if retain_graph is None else retain_graph
    _C._run_backward(roots, cotangents, retain, create_graph, _sequence(inputs), True, True)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False,
         only_inputs=True, allow_unused=None, is_grads_batched=False, materialize_grads=False):
    """The gradients of `outputs` with respect to `inputs`.

    Args:
        outputs, inputs (Tensor or sequence of Tensors).
        grad_outputs (Tensor or sequence): cotangents; None for scalars.
        retain_graph (bool): keep the graph; default: create_graph.
        create_graph (bool): record the backward pass itself.
        allow_unused (bool): None in place of an error for inputs outside of the graph.
        materialize_grads (bool): zeros in place of None.

    Returns:
        tuple of Tensors, one for each input.
    """
    if is_grads_batched:
        raise NotImplementedError("grad(): is_grads_batched=True is not implemented")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "grad(): materialize_grads=True needs allow_unused=True or None; got "
            "allow_unused=False")
    roots, leaves = _sequence(outputs), _sequence(inputs)
    cotangents = _sequence(grad_outputs)
    _check_lengths(roots, cotangents)
    retain = create_graph if retain_graph is None else retain_graph
    unused = materialize_grads if allow_unused is None else allow_unused
    grads = _C._run_backward(roots, cotangents, retain, create_graph, leaves, unused, False)
    if not materialize_grads:
        return grads
    import facula
    return tuple(facula.zeros_like(x, requires_grad=create_graph) if g is None else g
                 for g, x in zip(grads, leaves, strict=True))


def _check_lengths(roots, cotangents):
    if cotangents and len(cotangents) != len(roots):
        raise RuntimeError(
            f"got {len(roots)} tensors and {len(cotangents)} gradients")


def Variable(data, requires_grad=False, volatile=None):
    """The tensor itself, detached: tensors and variables are one since long."""
    return data.detach().requires_grad_(requires_grad)


def __getattr__(name):
    from importlib import import_module
    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    elif name.startswith("__"):
        raise AttributeError(name)
    else:
        try:
            value = import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    globals()[name] = value
    return value
