"""Automatic differentiation."""

from __future__ import annotations

import warnings

from facula import _C, _capture, _missing

__all__ = [
    "Variable",
    "Function",
    "backward",
    "grad_mode",
    "NestedIOFunction",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "enforce_grad_layout_policy",
    "variable",
]

_HOME = {
    "no_grad": "grad_mode",
    "enable_grad": "grad_mode",
    "set_grad_enabled": "grad_mode",
    "inference_mode": "grad_mode",
    "set_multithreading_enabled": "grad_mode",
    "enforce_grad_layout_policy": "grad_mode",
    "_unsafe_preserve_version_counter": "grad_mode",
    "Function": "function",
    "FunctionCtx": "function",
    "NestedIOFunction": "function",
    "once_differentiable": "function",
    "gradcheck": "gradcheck",
    "gradgradcheck": "gradcheck",
    "detect_anomaly": "anomaly_mode",
    "set_detect_anomaly": "anomaly_mode",
    "Variable": "variable",
    "locate_nan": "nan_locator",
}


def _is_edge(value):
    from facula.autograd.graph import GradientEdge

    return isinstance(value, GradientEdge)


def _sequence(value):
    if value is None:
        return ()
    return (value,) if isinstance(value, _C.Tensor) or _is_edge(value) else tuple(value)


@_capture.not_captured("autograd.backward()")
def backward(
    tensors,
    grad_tensors=None,
    retain_graph=None,
    create_graph=False,
    grad_variables=None,
    inputs=None,
):
    """Accumulate the gradients of `tensors` into the leaves of their graph.

    Args:
        tensors (Tensor, GradientEdge or sequence): the roots.
        grad_tensors (Tensor or sequence): cotangents; None for scalars.
        retain_graph (bool): keep the graph for another backward; default: create_graph.
        create_graph (bool): record the backward pass itself.
        inputs (Tensor, GradientEdge, sequence or dict): accumulate into these only.

    Raises:
        RuntimeError: a root that is no scalar has no cotangent, or needs no gradient.

    Example:
        >>> x = facula.tensor([1.0, 2.0], requires_grad=True)
        >>> facula.autograd.backward((x * x).sum())
        >>> x.grad
        tensor([2., 4.])
    """
    if grad_variables is not None:
        warnings.warn(
            "grad_variables is deprecated: its name is grad_tensors",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "backward(): grad_tensors and grad_variables are one argument; got both"
            )
        grad_tensors = grad_variables
    if isinstance(inputs, dict):
        inputs = tuple(inputs.values())
    if inputs is not None and len(_sequence(inputs)) == 0:
        raise RuntimeError("backward(): inputs must not be empty")
    roots, cotangents = _sequence(tensors), _sequence(grad_tensors)
    _check_lengths(roots, cotangents)
    retain = create_graph if retain_graph is None else retain_graph
    _C._run_backward(roots, cotangents, retain, create_graph, _sequence(inputs), True, True)


@_capture.not_captured("autograd.grad()")
def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """The gradients of `outputs` with respect to `inputs`.

    Args:
        outputs (Tensor, GradientEdge or sequence): the roots.
        inputs (Tensor, GradientEdge, sequence or dict): by which to differentiate.
        grad_outputs (Tensor or sequence): cotangents; None for scalars.
        retain_graph (bool): keep the graph; default: create_graph.
        create_graph (bool): record the backward pass itself.
        allow_unused (bool): None in place of an error for inputs outside of the graph.
        is_grads_batched (bool): the first dimension of each cotangent counts cotangents; the
            gradients have that dimension too.
        materialize_grads (bool): zeros in place of None.

    Returns:
        tuple of Tensors, one for each input; a dict when `inputs` is one.

    Raises:
        RuntimeError: an input is not used and that is not allowed; a root needs no gradient.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "grad(): materialize_grads=True needs allow_unused=True or None; got allow_unused=False"
        )
    if not only_inputs:
        warnings.warn(
            "grad(): only_inputs is deprecated and ignored; backward() accumulates into all leaves",
            FutureWarning,
            stacklevel=2,
        )
    if isinstance(inputs, dict):
        values = grad(
            outputs,
            tuple(inputs.values()),
            grad_outputs,
            retain_graph,
            create_graph,
            True,
            allow_unused,
            is_grads_batched,
            materialize_grads,
        )
        return dict(zip(inputs, values, strict=True))
    roots, leaves = _sequence(outputs), _sequence(inputs)
    if not leaves:
        raise RuntimeError("grad(): inputs must not be empty")
    cotangents = _sequence(grad_outputs)
    retain = create_graph if retain_graph is None else retain_graph
    unused = materialize_grads if allow_unused is None else allow_unused

    def run(cotangents):
        _check_lengths(roots, cotangents)
        return _C._run_backward(roots, cotangents, retain, create_graph, leaves, unused, False)

    grads = _batched(run, roots, cotangents) if is_grads_batched else run(cotangents[: len(roots)])
    if not materialize_grads:
        return grads
    if any(_is_edge(leaf) for leaf in leaves):
        raise RuntimeError("grad(): materialize_grads needs tensors as inputs; got a GradientEdge")
    import facula

    return tuple(
        facula.zeros_like(x, requires_grad=create_graph) if g is None else g
        for g, x in zip(grads, leaves, strict=True)
    )


def _batched(run, roots, cotangents):
    """`run` for each of the cotangents that lie along the first dimension of each tensor."""
    import facula
    from facula.func import vmap

    if not cotangents:
        cotangents = [None if _is_edge(root) else facula.ones_like(root) for root in roots]
    for i, (root, cotangent) in enumerate(zip(roots, cotangents, strict=False)):
        if cotangent is None or _is_edge(root) or cotangent.dim() == 0:
            continue
        if cotangent.shape[1:] != root.shape:
            raise RuntimeError(
                "grad(): is_grads_batched=True takes the first dimension of "
                f"grad_outputs[{i}] as the batch; the rest, {tuple(cotangent.shape[1:])}, must "
                f"be the shape of output {i}, {tuple(root.shape)}"
            )
    present = []

    def vjp(*cotangents):
        grads = run(cotangents)
        present[:] = [g is not None for g in grads]
        return tuple(g for g in grads if g is not None)

    found = iter(vmap(vjp)(*cotangents))
    return tuple(next(found) if there else None for there in present)


def _check_lengths(roots, cotangents):
    if cotangents and len(cotangents) != len(roots):
        raise RuntimeError(
            f"expected one gradient for each of {len(roots)} tensors; got {len(cotangents)}"
        )


def is_multithreading_enabled():
    """Whether backward may use several threads."""
    return _C._is_multithreading_enabled()


def __getattr__(name):
    from importlib import import_module

    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    elif name.startswith("__"):
        raise AttributeError(name)
    else:
        value = _missing.submodule(__name__, name)
    globals()[name] = value
    return value
