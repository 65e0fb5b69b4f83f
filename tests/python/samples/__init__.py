"""The tables of samples: a folder for each family of operators, whose files each have OPS."""

import importlib
from pathlib import Path

ROOT = Path(__file__).parent


def load_public_ops():
    """The rows of operators that have a name outside of `ops.aten`: those that users call."""
    return [op for op in load_ops() if not op.name.startswith("ops.aten.")]


def load_ops():
    """All rows of all families; `family` is the name of the folder, `table` that of the file."""
    found = []
    for path in sorted(ROOT.glob("*/*.py")):
        family = path.parent.name
        module = importlib.import_module(f"{__name__}.{family}.{path.stem}")
        for op in getattr(module, "OPS", ()):
            op.family, op.table = family, path.stem
            found.append(op)
    return found
