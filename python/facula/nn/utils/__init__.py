"""Helpers around gradients and parameters; each file is imported when it is first used."""

from __future__ import annotations

_NAMES = {
    "clip_grad": "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ "
    "get_total_norm",
    "convert_parameters": "parameters_to_vector vector_to_parameters",
}
_FILE_OF = {name: file for file, names in _NAMES.items() for name in names.split()}
_MISSING = (
    "parametrizations",
    "parametrize",
    "prune",
    "spectral_norm",
    "weight_norm",
    "remove_weight_norm",
    "remove_spectral_norm",
    "stateless",
    "skip_init",
    "fuse_conv_bn_eval",
    "fuse_linear_bn_eval",
)


def __getattr__(name):
    from importlib import import_module

    if name in _FILE_OF:
        value = getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
        globals()[name] = value
        return value
    if name in _NAMES or name == "rnn":
        return import_module(f"{__name__}.{name}")
    if name in _MISSING:
        # hasattr() and getattr() with a default go on, as with any name that is not there.
        raise AttributeError(f"facula.nn.utils.{name} is not implemented yet")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_FILE_OF, *_NAMES, "rnn"})
