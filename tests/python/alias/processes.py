"""Runs code in a process in which `import torch` means facula."""

import os
import subprocess
import sys
from pathlib import Path

import facula

HOME = Path(facula.__file__).parent / "_as_torch"
ABOVE = str(Path(facula.__file__).parents[1])
SWITCHED_ON = {"FACULA_AS_TORCH": "1", "PYTHONPATH": str(HOME)}


def run(*command, cwd=None, env=None, status=0, **options):
    """What a Python process prints; the test fails where it ends otherwise than with `status`."""
    clean = {k: v for k, v in os.environ.items() if k not in ("FACULA_AS_TORCH", "PYTHONPATH")}
    process = subprocess.run(
        [sys.executable, *command],
        env={**clean, "PYTHONPATH": ABOVE, **(env or {})},
        cwd=cwd,
        text=True,
        capture_output=True,
        timeout=120,
        **options,
    )
    assert process.returncode == status, process.stderr
    return process.stdout if status == 0 else process.stderr


def run_code(code, *args):
    """What code prints under `python -m facula run -c`."""
    return run("-m", "facula", "run", "-c", code, *args)
