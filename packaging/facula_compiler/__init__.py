"""The compiler of loops for facula: a library that compiled functions open when it is installed."""

from pathlib import Path

library = str(Path(__file__).parent / "libfacula_compiler.so")
