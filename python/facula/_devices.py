"""Modules of device types: `facula.<type>`, registered by whoever adds the device."""

from __future__ import annotations

import sys
from types import ModuleType

import facula


def _register_device_module(device_type, module):
    """Make a module `facula.<device_type>`.

    Args:
        device_type (str): a type that a library has registered.
        module (module): what it is.

    Raises:
        RuntimeError: no such type, or it has a module already.
    """
    device_type = facula.device(device_type).type
    name = f"{facula.__name__}.{device_type}"
    if name in sys.modules or device_type in vars(facula):
        raise RuntimeError(f"The runtime module of '{device_type}' has already been registered")
    setattr(facula, device_type, module)
    sys.modules[name] = module


def get_device_module(device=None):
    """The module of a device's type, `facula.cuda` for "cuda:1".

    Args:
        device (device | str | None): that of the accelerator if None; the CPU's without one.

    Raises:
        RuntimeError: the type has no module.
    """
    if device is None:
        device = facula.accelerator.current_accelerator() or "cpu"
    elif not isinstance(device, (facula.device, str)):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    type_ = facula.device(device).type
    try:
        module = getattr(facula, type_)
    except AttributeError:
        module = None
    if not isinstance(module, ModuleType):
        raise RuntimeError(f"Device '{type_}' does not have a corresponding module registered")
    return module
