"""Starts facula as torch where the environment asks for it, then the next `sitecustomize`."""

import os
import sys

import facula_as_torch

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_next():
    """Python runs one sitecustomize; the one that this stands before is run here."""
    own = sys.modules.pop(__name__)
    try:
        import sitecustomize  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault(__name__, own)


sys.path[:] = [entry for entry in sys.path if entry != _HERE]
_run_next()
if facula_as_torch.is_wanted():
    facula_as_torch.install()
