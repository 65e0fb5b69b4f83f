"""Nested tensors: batches of sequences of different lengths, without padding.

Layout `facula.jagged` is that of training: sequences that differ in one dimension, side by side in
one tensor of values. Layout `facula.strided` takes tensors that differ in any dimension.
"""

from __future__ import annotations

from facula import _missing

__all__ = [
    "to_padded_tensor",
    "as_nested_tensor",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "narrow",
    "masked_select",
]


def __getattr__(name):
    from importlib import import_module

    if name == "_internal":
        return import_module(f"{__name__}._internal")
    if name not in __all__:
        raise _missing.attribute(__name__, name)
    value = getattr(import_module(f"{__name__}._internal.construct"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
