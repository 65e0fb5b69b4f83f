"""Functions that write ONNX's operators of version 9: none yet, as there is no exporter."""
