#!/usr/bin/env python3
"""Runs the examples with facula and with PyTorch and puts their loss curves side by side.

    python examples/compare.py [NAME ...]          # make examples

It is run by a Python that has PyTorch, with facula on PYTHONPATH. What a program takes longest for
is training, so all options of all programs stay at their defaults. It writes the table of
examples/README.md and examples/curves.png from the newest curves of all programs.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CURVES = HERE.parent / "build" / "examples"
PROGRAMS = sorted(p.stem for p in HERE.glob("*.py") if "\nfrom training import" in p.read_text())
FRAMEWORKS = {"facula": ["-m", "facula", "run"], "PyTorch": []}
SHOWN = (0, 10, 50, 100, 200)
DOUBLE_STEPS = "100"
BEGIN, END = "<!-- curves: written by compare.py -->", "<!-- end of curves -->"


def run(name, framework, folder, *options):
    """Runs a program; returns what it printed. Its losses are in `folder`/losses.csv."""
    command = [*FRAMEWORKS[framework], str(HERE / f"{name}.py"), "--quiet", "--out-dir", folder]
    process = subprocess.run(
        [sys.executable, *map(str, command), *options],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    if process.returncode:
        raise SystemExit(f"{name} with {framework} failed:\n{process.stderr}")
    return process.stdout


def losses_of(folder):
    """The losses that a run has left in a folder."""
    with open(Path(folder) / "losses.csv", newline="") as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


def record(name, framework):
    """Runs a program with all its defaults and keeps its last line and how long it took."""
    folder = CURVES / framework / name
    began = time.perf_counter()
    printed = run(name, framework, folder)
    result = {
        "result": printed.strip().splitlines()[-1],
        "seconds": round(time.perf_counter() - began, 1),
    }
    run(name, framework, folder / "double", "--no-plot", "--double", "--steps", DOUBLE_STEPS)
    (folder / "result.json").write_text(json.dumps(result))
    print(f"{name} with {framework}: {result['result']}, {result['seconds']} s", flush=True)


def recorded(name):
    """By framework: losses, losses in float64, and the result of the newest runs of a program."""
    found = {}
    for framework in FRAMEWORKS:
        folder = CURVES / framework / name
        if (folder / "result.json").exists():
            result = json.loads((folder / "result.json").read_text())
            found[framework] = (losses_of(folder), losses_of(folder / "double"), result)
    return found if len(found) == len(FRAMEWORKS) else None


def agreement(ours, theirs, near):
    """For how many steps two curves agree within `near` of the loss."""
    pairs = enumerate(zip(ours, theirs, strict=True))
    return next((i for i, (a, b) in pairs if abs(a - b) > near * max(1, abs(b))), len(ours))


def rows_of(name, runs):
    """The rows of the table about one program."""
    single, double = (
        list(curves) for curves in zip(*(run[:2] for run in runs.values()), strict=False)
    )
    agree = agreement(*single, near=1e-3)
    agree_double = f"{agreement(*double, near=1e-6)} of {len(double[0])}"
    for framework, (losses, _, result) in runs.items():
        shown = [f"{losses[step]:.4f}" for step in SHOWN if step < len(losses) - 1]
        shown += [""] * (len(SHOWN) - len(shown))
        first = f"[{name}]({name}.py), {len(losses)} steps" if framework == "facula" else ""
        last = [f"{agree}", agree_double] if framework == "facula" else ["", ""]
        yield [first, framework, *shown, f"{losses[-1]:.4f}", *last, result["result"]]


def table(found):
    """The table of all programs in Markdown."""
    steps = [f"step {step}" for step in SHOWN]
    head = [
        "program",
        "with",
        *steps,
        "last step",
        "agree for",
        "in float64",
        "what it prints at last",
    ]
    rows = [head, ["---"] * len(head)]
    for name, runs in found.items():
        rows += rows_of(name, runs)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def write_table(found):
    """Puts the table into its place in README.md."""
    path = HERE / "README.md"
    text = path.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n\n{table(found)}\n\n{END}{after}", encoding="utf-8")


def save_picture(found):
    """Writes curves.png: a panel for each program, PyTorch's curve dashed on top of facula's."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(2, 3, figsize=(12, 6), layout="constrained")
    for axes, (name, runs) in zip(panels.flat, found.items(), strict=False):
        for (framework, (losses, *_)), style in zip(runs.items(), ("-", "--"), strict=True):
            axes.plot(losses, style, label=framework, linewidth=1)
        axes.set(title=name, xlabel="step", ylabel="loss")
        axes.legend()
    for axes in panels.flat[len(found) :]:
        axes.set_axis_off()
    figure.savefig(HERE / "curves.png", dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    names = parser.parse_args().names
    if unknown := set(names) - set(PROGRAMS):
        parser.error(f"unknown example {sorted(unknown)[0]!r}; there are {', '.join(PROGRAMS)}")
    for name in names or PROGRAMS:
        for framework in FRAMEWORKS:
            record(name, framework)
    found = {name: runs for name in PROGRAMS if (runs := recorded(name))}
    write_table(found)
    save_picture(found)


if __name__ == "__main__":
    main()
