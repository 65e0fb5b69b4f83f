"""Parameters as one vector."""

from __future__ import annotations

import facula


def _check_device(param, first):
    if first is not None and param.device != first:
        raise TypeError("all parameters must be on one device; got two")
    return param.device


def parameters_to_vector(parameters):
    """All elements of the parameters one after another; returns a 1-D Tensor.

    Raises:
        TypeError: parameters on different devices.
    """
    device, parts = None, []
    for param in parameters:
        device = _check_device(param, device)
        parts.append(param.view(-1))
    return facula.cat(parts)


def vector_to_parameters(vec, parameters):
    """Give each parameter its part of the 1-D Tensor `vec` as data.

    Raises:
        TypeError: `vec` is no Tensor, or parameters are on different devices.
    """
    if not isinstance(vec, facula.Tensor):
        raise TypeError(f"vector_to_parameters(): vec must be a Tensor; got {facula.typename(vec)}")
    device, start = None, 0
    for param in parameters:
        device = _check_device(param, device)
        end = start + param.numel()
        param.data = vec[start:end].view_as(param).data
        start = end
