"""Models as ONNX files: there is no exporter yet; programs ask whether one is at work."""

from __future__ import annotations

from enum import Enum, IntEnum

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


class TensorProtoDataType(IntEnum):
    """ONNX's numbers of element types (onnx.proto, TensorProto.DataType)."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


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


_symbolics = {}  # (operator, version) -> function, for an exporter


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Note a function that writes an operator of one's own in ONNX's terms.

    Args:
        symbolic_name (str): "namespace::name".
        symbolic_fn: called as symbolic_fn(graph, *args) in an export.
        opset_version (int): from which version of ONNX's operators on.

    Raises:
        OnnxExporterError: a name without a namespace, or in "aten".
    """
    namespace, found, _ = symbolic_name.partition("::")
    if not found or namespace == "aten":
        raise OnnxExporterError(
            "register_custom_op_symbolic(): symbolic_name must be 'namespace::name' outside of "
            f"aten; got {symbolic_name}"
        )
    _symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """Forget what `register_custom_op_symbolic` noted."""
    _symbolics.pop((symbolic_name, opset_version), None)


def __getattr__(name):
    if name.startswith("__"):
        raise _missing.attribute(__name__, name)
    return _missing.submodule(__name__, name)
