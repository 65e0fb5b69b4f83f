"""Helpers around gradients and parameters; each file is imported when it is first used."""

from __future__ import annotations

from facula import _missing

_NAMES = {
    "clip_grad": "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ "
    "get_total_norm",
    "convert_parameters": "parameters_to_vector vector_to_parameters",
}
_FILE_OF = {name: file for file, names in _NAMES.items() for name in names.split()}


def __getattr__(name):
    from importlib import import_module

    if name in _FILE_OF:
        value = getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
        globals()[name] = value
        return value
    if name in _NAMES or name == "rnn":
        return import_module(f"{__name__}.{name}")
    raise _missing.attribute(__name__, name)


def __dir__():
    return sorted({*globals(), *_FILE_OF, *_NAMES, "rnn"})
