"""Tensors with elements that do not count: reductions by a mask, and MaskedTensor."""

from __future__ import annotations

from facula import _missing

_FILE_OF = {
    **dict.fromkeys(
        (
            "amax amin argmax argmin cumprod cumsum log_softmax logaddexp logsumexp mean median "
            "norm normalize prod softmax softmin std sum var"
        ).split(),
        "_ops",
    ),
    "MaskedTensor": "maskedtensor",
    "as_masked_tensor": "maskedtensor",
    "is_masked_tensor": "maskedtensor",
    "masked_tensor": "maskedtensor",
}

__all__ = sorted(_FILE_OF, key=str.lower)


def __getattr__(name):
    from importlib import import_module

    if name in _FILE_OF:
        value = getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
        globals()[name] = value
        return value
    if name in ("_input_mask", "_output_mask"):
        return getattr(import_module(f"{__name__}._ops"), name)
    if name in ("_ops", "maskedtensor"):
        return import_module(f"{__name__}.{name}")
    raise _missing.attribute(__name__, name)


def __dir__():
    return sorted({*globals(), *__all__})
