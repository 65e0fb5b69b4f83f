#!/usr/bin/env python3
"""Writes docs/coverage_autograd.md: every public name of PyTorch's autograd, func, overrides and
library, with its state in facula.

    PYTHONPATH=build/release/python build/oracle-venv/bin/python tools/coverage_table.py [--check]

A name that facula lacks needs a written reason in docs/coverage_reasons.tsv (name, tab, reason; a
name that ends in `.*` stands for all names below it). With --check nothing is written: the exit
status says whether a reason is missing, or one is there for a name that facula has.
"""

import argparse
import importlib
import inspect
import pathlib
import sys

MODULES = (
    "autograd",
    "autograd.anomaly_mode",
    "autograd.forward_ad",
    "autograd.function",
    "autograd.functional",
    "autograd.grad_mode",
    "autograd.gradcheck",
    "autograd.graph",
    "func",
    "overrides",
    "library",
)
ROOT = pathlib.Path(__file__).resolve().parents[1]
TABLE, REASONS = ROOT / "docs/coverage_autograd.md", ROOT / "docs/coverage_reasons.tsv"


def public_names(module):
    """Names that the module offers: those it lists, else those it defines itself."""
    listed = set(getattr(module, "__all__", ()))
    own = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }
    return sorted(listed | own)


def members(cls):
    """Public methods and properties that PyTorch's Python source gives a class."""
    if not inspect.isclass(cls) or issubclass(cls, (BaseException, tuple)):
        return []
    from_torch = [
        base
        for base in cls.__mro__
        if base.__module__.startswith("torch") and not base.__module__.startswith("torch._C")
    ]
    return sorted({name for base in from_torch for name in vars(base) if not name.startswith("_")})


def torch_names():
    """Yields (module, name within it) for all names and members of classes."""
    for place in MODULES:
        module = importlib.import_module(f"torch.{place}")
        for name in public_names(module):
            yield place, name
            for member in members(getattr(module, name)):
                yield place, f"{name}.{member}"


def is_there(place, name):
    """Whether facula has the name, and does not answer that it is still to come."""
    try:
        value = importlib.import_module(f"facula.{place}")
        for part in name.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError, NotImplementedError):
        return False
    return True


def read_reasons():
    lines = REASONS.read_text().splitlines()
    return dict(line.split("\t", 1) for line in lines if line and not line.startswith("#"))


def reason_for(full, reasons):
    """The reason for a name: its own, or that of a name that it is below."""
    parts = full.split(".")
    below = [".".join(parts[:n]) + ".*" for n in range(len(parts) - 1, 0, -1)]
    above = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next((reasons[key] for key in (*above, *below) if key in reasons), None)


def survey():
    """Rows (module, name, there, reason) and complaints."""
    reasons, rows, complaints = read_reasons(), [], []
    for place, name in torch_names():
        full = f"{place}.{name}"
        there, reason = is_there(place, name), reason_for(full, reasons)
        if not there and reason is None:
            complaints.append(f"{full} is missing without a reason")
        if there and full in reasons and not reasons[full].startswith("raises"):
            complaints.append(f"{full} has a reason and is there")
        rows.append((place, name, there, reason or ""))
    return rows, complaints


def table(rows):
    lines = [
        "# PyTorch's names of autograd, func, overrides and library, and facula's state",
        "",
        "Made by `make coverage-table`; reasons stand in `docs/coverage_reasons.tsv`.",
        "",
    ]
    have = sum(there for _, _, there, _ in rows)
    unexplained = sum(not (there or reason) for _, _, there, reason in rows)
    lines += [
        f"{have} of {len(rows)} names are there; {unexplained} are missing without a reason.",
        "",
    ]
    for module in MODULES:
        mine = [row for row in rows if row[0] == module]
        count = sum(there for _, _, there, _ in mine)
        lines += [
            f"## {module} ({count} of {len(mine)})",
            "",
            "| name | state | reason |",
            "|---|---|---|",
        ]
        lines += [
            f"| `{name}` | {'have' if there else 'missing'} | {reason} |"
            for _, name, there, reason in mine
        ]
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    rows, complaints = survey()
    print("\n".join(complaints), end="\n" if complaints else "")
    if not options.check:
        TABLE.write_text(table(rows))
        print(f"{TABLE.relative_to(ROOT)}: {len(rows)} names")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
