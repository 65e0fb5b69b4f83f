"""Helpers around gradients and parameters; each file is imported when it is first used."""

from __future__ import annotations

import sys
from types import ModuleType

from facula import _missing

_NAMES = {
    "clip_grad": "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ "
    "get_total_norm",
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights",
    "init": "skip_init",
    "memory_format": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format",
    "spectral_norm": "remove_spectral_norm spectral_norm",
    "weight_norm": "remove_weight_norm weight_norm",
}
_FILE_OF = {name: file for file, names in _NAMES.items() for name in names.split()}
_SUBMODULES = ("parametrizations", "parametrize", "prune", "rnn", "stateless")


class _Package(ModuleType):
    """The type of this package: a function keeps its name where a submodule has it, too."""

    def __setattr__(self, name, value):
        # An import of a submodule assigns it to its package.
        if isinstance(value, ModuleType) and name in _FILE_OF:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name):
    from importlib import import_module

    if name in _FILE_OF:
        value = getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
        globals()[name] = value
        return value
    if name in _NAMES or name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise _missing.attribute(__name__, name)


def __dir__():
    return sorted({*globals(), *_FILE_OF, *_NAMES, *_SUBMODULES})
