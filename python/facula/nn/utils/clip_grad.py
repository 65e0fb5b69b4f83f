"""Limits of gradients."""

from __future__ import annotations

import sys

import facula


def _tensor_list(tensors):
    return [tensors] if isinstance(tensors, facula.Tensor) else list(tensors)


def _by_kind(tensors):
    """The tensors in lists of one device and dtype."""
    kinds = {}
    for tensor in tensors:
        kinds.setdefault((tensor.device, tensor.dtype), []).append(tensor)
    return kinds.values()


def _is_distributed(tensor):
    # Nobody has a DTensor who has not imported them.
    module = sys.modules.get(f"{facula.__name__}.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def _norm_of_norms(tensors, norm_type):
    device = tensors[0].device
    norms = [norm for kind in _by_kind(tensors) for norm in facula._foreach_norm(kind, norm_type)]
    return facula.linalg.vector_norm(facula.stack([n.to(device) for n in norms]), norm_type)


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of the norms of `tensors`.

    Args:
        tensors: a Tensor or an iterable of Tensors.
        norm_type: the p of both norms, may be "inf".
        error_if_nonfinite: raise for nan and infinite norms.
        foreach: accepted; the fastest way is always taken.

    Returns:
        A 0-dim Tensor.

    Raises:
        RuntimeError: a norm that is not finite, when asked.
    """
    tensors = _tensor_list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return facula.tensor(0.0)
    total = None
    if _is_distributed(tensors[0]):
        from facula.distributed.tensor._total_norm import total_norm

        total = total_norm(tensors, norm_type, lambda parts: _norm_of_norms(parts, norm_type))
    if total is None:
        total = _norm_of_norms(tensors, norm_type)
    if error_if_nonfinite and facula.logical_or(total.isnan(), total.isinf()):
        raise RuntimeError(
            f"clip_grad_norm_(): the total norm of order {norm_type} is infinite or NaN, and "
            "error_if_nonfinite=True"
        )
    return total


def _gradients(parameters):
    return [p.grad for p in parameters if p.grad is not None]


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scale the gradients by max_norm / total_norm where that is below 1, in place."""
    grads = _gradients(_tensor_list(parameters))
    if not grads:
        return
    scale = facula.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
    with facula.no_grad():
        for kind in _by_kind(grads):
            facula._foreach_mul_(kind, scale.to(kind[0].device))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale the gradients so that their total norm is at most `max_norm`, in place.

    Args:
        parameters: a Tensor or an iterable of Tensors.
        max_norm: the limit.
        norm_type: the p of the norm, may be "inf".
        error_if_nonfinite: raise for nan and infinite norms.
        foreach: accepted; the fastest way is always taken.

    Returns:
        The norm before, a 0-dim Tensor.
    """
    parameters = _tensor_list(parameters)
    with facula.no_grad():
        total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Old name of `clip_grad_norm_`."""
    import warnings

    warnings.warn(
        "clip_grad_norm() is deprecated; clip_grad_norm_() is its name", FutureWarning, stacklevel=2
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamp every gradient to [-clip_value, clip_value], in place."""
    limit = float(clip_value)
    with facula.no_grad():
        for kind in _by_kind(_gradients(_tensor_list(parameters))):
            facula._foreach_clamp_min_(kind, -limit)
            facula._foreach_clamp_max_(kind, limit)
