"""Optimizers and learning rate schedulers; each is imported when it is first used."""

from __future__ import annotations

from facula import _C, _missing

_C._lazy_module(__name__)

_CLASSES = {
    "_adafactor": "Adafactor",
    "_muon": "Muon",
    "adadelta": "Adadelta",
    "adagrad": "Adagrad",
    "adam": "Adam",
    "adamax": "Adamax",
    "adamw": "AdamW",
    "asgd": "ASGD",
    "lbfgs": "LBFGS",
    "nadam": "NAdam",
    "_stateless": "swap_in_optimizer_params_and_state",
    "optimizer": "Optimizer",
    "radam": "RAdam",
    "rmsprop": "RMSprop",
    "rprop": "Rprop",
    "sgd": "SGD",
    "sparse_adam": "SparseAdam",
}
_SUBMODULES = ("functional", "lr_scheduler", "swa_utils")
_FILE_OF = {name: file for file, names in _CLASSES.items() for name in names.split()}


def __getattr__(name):
    from importlib import import_module

    if name in _FILE_OF:
        value = getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
        globals()[name] = value
        return value
    if name in _CLASSES or name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise _missing.attribute(__name__, name)


def __dir__():
    return sorted({*globals(), *_FILE_OF, *_CLASSES, *_SUBMODULES})
