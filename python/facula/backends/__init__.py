"""Switches and questions about the libraries under operators, most of which facula does not use."""

from __future__ import annotations

from contextlib import contextmanager

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

# Whether flags may be set by assignment; `disable_global_flags` ends it.
__allow_nonbracketed_mutation_flag = True


def disable_global_flags():
    """From now on flags are set by their `flags` context managers only."""
    global __allow_nonbracketed_mutation_flag
    __allow_nonbracketed_mutation_flag = False


def flags_frozen():
    """Whether setting a flag by assignment raises RuntimeError."""
    return not __allow_nonbracketed_mutation_flag


@contextmanager
def __allow_nonbracketed_mutation():
    """Context manager: flags may be set by assignment within."""
    global __allow_nonbracketed_mutation_flag
    before = __allow_nonbracketed_mutation_flag
    __allow_nonbracketed_mutation_flag = True
    try:
        yield
    finally:
        __allow_nonbracketed_mutation_flag = before


def __getattr__(name):
    if name == "fp32_precision":
        return "none"
    return _missing.submodule(__name__, name)


def __dir__():
    return sorted({*globals(), *_NAMES})
