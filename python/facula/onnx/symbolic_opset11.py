"""Functions that write ONNX's operators of version 11: none yet, as there is no exporter."""
