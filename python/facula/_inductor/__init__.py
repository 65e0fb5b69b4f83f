"""Settings of PyTorch's code generator, for programs that set them."""

from __future__ import annotations

from facula._inductor import config  # noqa: F401


def list_mode_options(mode=None, dynamic=None):
    """What each mode of `compile` stands for, as dicts of options; nothing here."""
    modes = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
    return {name: {} for name in modes} if mode is None else {}


def list_options():
    """The names of options that `compile` takes, as a list."""
    return list(config.get_config_copy())
