"""Switches and questions about the libraries under operators, most of which facula does not use."""

from __future__ import annotations

from facula import _missing

_NAMES = (
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "kleidiai",
    "mha",
    "miopen",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
)

__all__ = [*_NAMES]


def __getattr__(name):
    if name == "fp32_precision":
        return "none"
    return _missing.submodule(__name__, name)


def __dir__():
    return sorted({*globals(), *_NAMES})
