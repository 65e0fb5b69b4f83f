"""Datapipes: datasets that are built from one another; each folder is imported when used."""

from importlib import import_module

from facula import _missing


def __getattr__(name):
    if name in ("datapipe", "iter", "map", "utils"):
        return import_module(f"{__name__}.{name}")
    raise _missing.attribute(__name__, name)
