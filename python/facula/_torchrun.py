"""The commands `facula-torchrun` and `torchrun` of an installed facula."""

from __future__ import annotations

import importlib.util
import runpy
import sys

_LAUNCHER = "torch.distributed.run"


def facula_torchrun():
    """Start ranks whose `import torch` means facula, whether or not PyTorch is installed."""
    from facula import _run

    return _run.run(["-m", _LAUNCHER, *sys.argv[1:]])


def torchrun():
    """PyTorch's own torchrun where PyTorch is installed, else facula's.

    Both packages have a command of this name, and the one that was installed last has its file: it
    must not take PyTorch's users to facula.
    """
    if importlib.util.find_spec("torch") is None:
        return facula_torchrun()
    runpy.run_module(_LAUNCHER, run_name="__main__", alter_sys=True)
    return 0
