"""Private names of `torch._C` that packages use, for programs that say `import torch`.

They stand for parts that facula has elsewhere, or say which part is not there. Importing this
module puts them into `facula._C`; that happens where the package is loaded as torch.
"""

from __future__ import annotations

import facula
from facula import _C, _missing

_DISPATCH_KEYS = "facula._library.dispatch_keys"
# Names that are loaded when they are asked for: name -> module, name there.
_ELSEWHERE = {
    "DispatchKey": (_DISPATCH_KEYS, "DispatchKey"),
    "DispatchKeySet": (_DISPATCH_KEYS, "DispatchKeySet"),
    "ExcludeDispatchKeyGuard": (_DISPATCH_KEYS, "ExcludeDispatchKeyGuard"),
    "PyTorchFileReader": ("facula.serialization.archive", "PyTorchFileReader"),
    "_ExcludeDispatchKeyGuard": (_DISPATCH_KEYS, "ExcludeDispatchKeyGuard"),
}


def _find(name):
    """A name that `_C` does not have yet."""
    from importlib import import_module

    if name not in _ELSEWHERE:
        raise _missing.attribute(_C.__name__, name)
    module, real_name = _ELSEWHERE[name]
    value = getattr(import_module(module), real_name)
    setattr(_C, name, value)
    return value


def _get_privateuse1_backend_name():
    """The name of the accelerator that a library registered, else "privateuseone"."""
    name = _C._accelerator_name()
    return "privateuseone" if name in (None, "cuda") else name


def _get_accelerator(check=None):
    """The accelerator's device; the CPU without one."""
    return facula.device(_C._accelerator_name() or "cpu")


def _get_default_device():
    """The kind of device that new tensors are on, as text."""
    return facula.get_default_device().type


def _get_cpu_capability():
    """The instruction set in force, as text."""
    return _C._cpu_capability().upper()


def _is_torch_function_mode_enabled():
    """Whether a mode sees the functions that are called."""
    return _C._len_torch_function_stack() > 0


def _are_functorch_transforms_active():
    """Whether a function runs under vmap, grad or another transform."""
    return _C._functorch.maybe_current_level() != -1


def _log_api_usage_once(event):
    """Nothing is counted or sent."""


def _get_tracing_state():
    """What records the present call: None, as nothing does."""
    return None


def _cuda_isInBadFork():
    """Whether CUDA was started before this process was forked."""
    return False


def _cuda_clearCublasWorkspaces():
    """Free cuBLAS's memory, of which there is none."""


def _parse_to(*args, **kwargs):
    """(device, dtype, non_blocking, memory_format) that arguments of `Module.to` mean."""
    from facula.nn.modules._to import parse_to

    return parse_to(*args, **kwargs)


class _VariableFunctionsClass:
    """The operators as attributes."""

    def __getattr__(self, name):
        return _C._function("", name)


# Switches of TorchScript's optimizer: kept for who asks, as there is no fuser to heed them.
_fuser = {"profiling_executor": True, "profiling_mode": True, "texpr_fuser_enabled": False}
_fuser.update(can_fuse_on_cpu=False, can_fuse_on_gpu=False)


def _fuser_setter(name, gives_previous=False):
    def set_switch(value):
        before, _fuser[name] = _fuser[name], bool(value)
        return before if gives_previous else None

    return set_switch


def _fuser_getter(name):
    return lambda: _fuser[name]


_names = {
    "_get_privateuse1_backend_name": _get_privateuse1_backend_name,
    "_get_accelerator": _get_accelerator,
    "_get_default_device": _get_default_device,
    "_get_cpu_capability": _get_cpu_capability,
    "_is_torch_function_mode_enabled": _is_torch_function_mode_enabled,
    "_are_functorch_transforms_active": _are_functorch_transforms_active,
    "_log_api_usage_once": _log_api_usage_once,
    "_get_tracing_state": _get_tracing_state,
    "_cuda_isInBadFork": _cuda_isInBadFork,
    "_cuda_getDeviceCount": lambda: _C._device_count("cuda"),
    "_cuda_clearCublasWorkspaces": _cuda_clearCublasWorkspaces,
    "_has_cuda": False,
    "_TensorBase": _C.TensorBase,
    "_VariableFunctionsClass": _VariableFunctionsClass,
    "_VariableFunctions": _VariableFunctionsClass(),
    "_jit_set_profiling_executor": _fuser_setter("profiling_executor", gives_previous=True),
    "_jit_set_profiling_mode": _fuser_setter("profiling_mode", gives_previous=True),
    "_jit_set_texpr_fuser_enabled": _fuser_setter("texpr_fuser_enabled"),
    "_jit_texpr_fuser_enabled": _fuser_getter("texpr_fuser_enabled"),
    "_jit_override_can_fuse_on_cpu": _fuser_setter("can_fuse_on_cpu"),
    "_jit_override_can_fuse_on_gpu": _fuser_setter("can_fuse_on_gpu"),
    "_jit_can_fuse_on_cpu": _fuser_getter("can_fuse_on_cpu"),
    "_jit_can_fuse_on_gpu": _fuser_getter("can_fuse_on_gpu"),
}
for _name, _value in _names.items():
    if not hasattr(_C, _name):
        setattr(_C, _name, _value)
_C._nn._parse_to = _parse_to
_C.__getattr__ = _find
