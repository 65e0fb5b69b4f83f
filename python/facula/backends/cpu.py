"""The processor's instruction sets."""

from __future__ import annotations

from facula import _C


def get_cpu_capability():
    """The instruction set that kernels use: "DEFAULT" (x86-64-v2), "AVX2" or "AVX512".

    It is the best that the processor and this build have; the environment variable
    FACULA_CPU_CAPABILITY (or PyTorch's ATEN_CPU_CAPABILITY) asks for a lesser one before the first
    kernel runs.

    Example:
        >>> facula.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
        True
    """
    return _C._cpu_capability()
