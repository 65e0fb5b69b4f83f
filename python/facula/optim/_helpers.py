"""Functions and types of optim.optimizer that optimizers written elsewhere import."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import facula
from facula.optim._lists import view_as_real
from facula.optim.optimizer import _step_dtype, _value

ParamsT: TypeAlias = (
    Iterable[facula.Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, facula.Tensor]]
)
Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
DeviceDict = dict
GlobalOptimizerPreHook: TypeAlias = Callable[..., Any]
GlobalOptimizerPostHook: TypeAlias = Callable[..., None]

_get_value = _to_scalar = _stack_if_compiling = _value


def _get_scalar_dtype(is_fused=None):
    return facula.float32 if is_fused else _step_dtype()


def _use_grad_for_differentiable(func):
    """A step with gradients switched on only where `defaults["differentiable"]` says so."""

    @functools.wraps(func)
    def step(*args, **kwargs):
        is_on = args[0].defaults["differentiable"] and facula.is_grad_enabled()
        with facula.set_grad_enabled(is_on):
            return func(*args, **kwargs)

    return step


def _disable_dynamo_if_unsupported(single_tensor_fn=None):
    return lambda func: func


def _get_foreach_kernels_supported_devices():
    return ["cuda", "xpu", "mtia", facula._C._get_privateuse1_backend_name()]


def _get_capturable_supported_devices(supports_xla=True):
    devices = ["cuda", "xpu", "hpu", "privateuseone"]
    return [*devices, "xla"] if supports_xla else devices


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """Which of the faster ways an optimizer takes by itself; returns (fused, foreach)."""
    if differentiable:
        return False, False
    devices = _get_capturable_supported_devices(supports_xla=False)

    def serves(p):
        return p is None or (type(p) in (facula.Tensor, facula.nn.Parameter) and _on(p, devices))

    if use_fused and all(serves(p) and (p is None or p.is_floating_point()) for p in params):
        return True, False
    return False, all(serves(p) for p in params)


def _on(p, devices):
    return p.device.type in devices


def _device_dtype_check_for_fused(p, cuda_unsupported=False):
    """Raise RuntimeError where the fused operators do not serve a parameter."""
    if not p.is_floating_point() or (cuda_unsupported and p.device.type == "cuda"):
        raise RuntimeError(
            "fused=True: parameters must be real and on a device with fused operators; got "
            f"{p.dtype} on {p.device}"
        )


def _view_as_real(params, *state_and_grads):
    """See the complex tensors of all lists as pairs of real numbers, in place."""
    lists = (params, *state_and_grads)
    is_complex = [p.is_complex() for p in params]
    for values in lists:
        for i, (value, real) in enumerate(zip(values, view_as_real(values)[0], strict=True)):
            if is_complex[i] and value is not real:
                values[i] = real


_params_doc = "params: iterable of parameters, of (name, parameter) pairs, or of groups."
_foreach_doc = "foreach: accepted; the fastest way is always taken."
_fused_doc = "fused: accepted; the fastest way is always taken."
_capturable_doc = "capturable: whether a step may be part of a graph of device work."
_differentiable_doc = "differentiable: keep the graph through the step."
_maximize_doc = "maximize: climb instead of descend."
