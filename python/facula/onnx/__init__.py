"""Models as ONNX files: there is no exporter yet; programs ask whether one is at work."""

from __future__ import annotations

from enum import Enum

from facula import _missing

__all__ = ["ONNXProgram", "OnnxExporterError", "export", "is_in_onnx_export"]


class OnnxExporterError(RuntimeError):
    """What goes wrong in an export."""


class TrainingMode(Enum):
    """The mode that a model is exported in."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(Enum):
    """What becomes of operators that ONNX lacks."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class ONNXProgram:
    """A model in ONNX's terms: `export` makes it."""

    def __init__(self, model, exported_program):
        raise NotImplementedError("ONNXProgram(): facula has no ONNX exporter yet")


def is_in_onnx_export():
    """Whether a model is being exported: False.

    Example:
        >>> facula.onnx.is_in_onnx_export()
        False
    """
    return False


def export(model, args=(), f=None, **options):
    """Write a model as an ONNX file: NotImplementedError."""
    raise NotImplementedError("onnx.export(): facula has no ONNX exporter yet")


def __getattr__(name):
    if name.startswith("__"):
        raise _missing.attribute(__name__, name)
    return _missing.submodule(__name__, name)
