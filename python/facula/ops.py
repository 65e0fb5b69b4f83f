"""Operators by namespace: `facula.ops.aten.add.Tensor`."""

from __future__ import annotations

from facula import _C


class _Namespace:
    """The operators of one namespace, found when asked for."""

    def __init__(self, name):
        self._name = name
        self.__name__ = f"{__name__}.{name}"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        packet = _C._packet(self._name, name)
        if packet is None and self._name == "aten":
            import facula._library.python_operators  # noqa: F401  (defines more of them)

            packet = _C._packet(self._name, name)
        if packet is None and self._name == "quantized":
            from facula._library import quantized_operators

            packet = quantized_operators.find(name)
        if packet is None and self._name == "sparse":
            from facula._library import sparse_quantized_operators

            packet = sparse_quantized_operators.find(name)
        if packet is None:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        if self._name == "aten":
            from facula._library.scalar_overloads import define_scalar_overloads

            define_scalar_overloads(name)
            setattr(self, name, packet)
        return packet

    def __dir__(self):
        return sorted({*super().__dir__(), *_C._operator_names(self._name)})

    def __iter__(self):
        return iter(sorted(set(_C._operator_names(self._name))))

    def __repr__(self):
        return f"<{self.__name__}>"


class _HigherOrderNamespace(_Namespace):
    """The operators that take functions."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        from facula._higher_order_ops._operator import operator_named

        setattr(self, name, operator_named(name))
        return vars(self)[name]


loaded_libraries = set()  # paths of the libraries that `load_library` opened


def load_library(path):
    """Open a library that registers operators, kernels, devices or layouts.

    A library that exports `facula_extension_start` (C, `facula/c.h`) has it called, once.

    Args:
        path: of the library, str or os.PathLike.

    Raises:
        TypeError: `path` is no path.
        OSError: the file is missing, no library, or needs symbols that are not there.
        Exception: whatever `facula_extension_start` reports.

    Example:
        >>> facula.ops.load_library("build/libmine.so")  # doctest: +SKIP
        >>> facula.ops.mine.twice(facula.ones(2))  # doctest: +SKIP
        tensor([2., 2.])
    """
    import ctypes
    import os

    path = os.path.realpath(os.fsdecode(path))
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise OSError(f"Could not load this library: {path} ({error})") from error
    if path not in loaded_libraries and hasattr(library, "facula_extension_start"):
        _check_status(library, library.facula_extension_start())
    loaded_libraries.add(path)


# By the codes of facula/c.h, from 1 on.
_ERRORS = (
    RuntimeError,
    TypeError,
    ValueError,
    IndexError,
    KeyError,
    NotImplementedError,
    MemoryError,
    OverflowError,
    ImportError,
    AttributeError,
    AssertionError,
)


def _check_status(library, code):
    if code == 0:
        return
    import ctypes

    text_of = library.facula_error_text  # of libfacula, which the library refers to
    text_of.restype = ctypes.c_char_p
    text = text_of().decode(errors="replace")
    raise (_ERRORS[code - 1] if 1 <= code <= len(_ERRORS) else RuntimeError)(text)


def import_module(module):
    """Import a Python module that registers operators when it is imported."""
    import importlib

    importlib.import_module(module)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    kind = _HigherOrderNamespace if name == "higher_order" else _Namespace
    namespace = globals()[name] = kind(name)
    return namespace
