"""What this build is made of, as text."""

from __future__ import annotations

import os
import platform

import facula
from facula import _C

__all__ = ["parallel_info", "show"]


def show():
    """The build: compiler's standard, instruction set in force, threads, version.

    Example:
        >>> "CPU capability usage" in facula.__config__.show()
        True
    """
    lines = [
        "facula built with:",
        "  - C++ Version: 202002",
        f"  - CPU capability usage: {_C._cpu_capability()}",
        "  - products, convolutions and transforms of its own; no MKL, no oneDNN",
        f"  - Python {platform.python_version()}",
        f"  - Build settings: BUILD_TYPE={'Debug' if facula.version.debug else 'Release'}, "
        f"FACULA_VERSION={facula.__version__}, GIT_VERSION={facula.version.git_version}, "
        "USE_CUDA=OFF, USE_DISTRIBUTED=OFF, USE_MKL=OFF, USE_MKLDNN=OFF, USE_OPENMP=OFF, ",
    ]
    return "\n".join(lines) + "\n"


def parallel_info():
    """The threads that operators use, and the variables that set them.

    Example:
        >>> "get_num_threads" in facula.__config__.parallel_info()
        True
    """
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
    lines = [
        "ATen/Parallel:",
        f"\tat::get_num_threads() : {facula.get_num_threads()}",
        f"std::thread::hardware_concurrency() : {os.cpu_count()}",
        "Environment variables:",
        *(f"\t{name} : {os.environ.get(name, '[not set]')}" for name in names),
        "ATen parallel backend: native thread pool",
    ]
    return "\n".join(lines) + "\n"


def _cxx_flags():
    return "-std=c++20"
