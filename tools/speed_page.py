#!/usr/bin/env python3
"""Writes the page of measured speed from the newest saved run of the bench.

python tools/speed_page.py build/docs/source/speed.md
"""

import argparse
import json
import statistics
from pathlib import Path

from console import BUILD, ROOT, Failure, run_main, say, shown

RESULTS = ROOT / "bench" / "results"
PEER, OURS = "torch", "facula"
HEAD = """# Measured speed

facula beside PyTorch, on the CPU of one machine. A figure is PyTorch's time divided by facula's:
more than 1x is faster than PyTorch, and all cases are here, the slower ones among them.
`python -m bench` measures them anew ([how](docs/internals/bench.md)).

"""
ABOUT = {
    "overhead": "Small calls, where it is the way from Python to the kernel that takes time.",
    "training": "Whole steps of training: forward, backward and the optimizer's step.",
    "kernels": "Operators on tensors large enough that the kernel takes the time.",
    "startup": "What `import` takes.",
    "loader": "Batches from worker processes.",
}


def newest(folder=RESULTS):
    """The newest saved run that holds more than one suite, as the dictionary that was saved."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    runs = [run for run in runs if len(run["suites"]) > 1]
    if not runs:
        raise Failure(f"there is no run of several suites in {shown(folder)}: python -m bench")
    return max(runs, key=lambda run: run["time"])


def seconds(value):
    """A time with three digits in the unit that suits it."""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def table(head, rows):
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def ratios(cases):
    """The ratios of those cases that PyTorch could run."""
    return [case["ratios"][PEER] for case in cases if PEER in case["ratios"]]


def families(cases):
    """The table of a suite's families and numbers of threads."""
    groups = {}
    for case in cases:
        groups.setdefault((case["family"] or "all", case["threads"]), []).append(case)
    rows = []
    for (family, threads), group in sorted(groups.items()):
        if found := ratios(group):
            mean = f"{statistics.geometric_mean(found):.2f}x"
            row = [
                family,
                threads or "",
                len(found),
                mean,
                f"{min(found):.2f}x",
                f"{max(found):.2f}x",
            ]
            rows.append(row)
    return table(["family", "threads", "cases", "geometric mean", "least", "most"], rows)


def all_cases(cases):
    """The table of a suite's cases, by name."""
    rows = []
    for case in cases:
        times = [seconds(case["seconds"][n]) if n in case["seconds"] else "" for n in (OURS, PEER)]
        ratio = f"{case['ratios'][PEER]:.2f}x" if PEER in case["ratios"] else ""
        name = case["name"].replace("|", "\\|")
        rows.append([f"`{name}`", case["threads"] or "", *times, ratio])
    return table(["case", "threads", "facula", "PyTorch", "ratio"], rows)


def suite(name, cases):
    """The part of the page about one suite."""
    mean = statistics.geometric_mean(ratios(cases)) if ratios(cases) else None
    figure = f" Geometric mean of {len(ratios(cases))} cases: **{mean:.2f}x**." if mean else ""
    text = f"## {name.capitalize()}\n\n{ABOUT.get(name, '')}{figure}\n\n"
    if len({(case["family"], case["threads"]) for case in cases}) > 1:
        text += families(cases) + "\n"
    return f"{text}<details><summary>All cases</summary>\n\n{all_cases(cases)}\n</details>\n"


def page(run):
    """The page for a saved run."""
    about = f"Commit `{run['commit']}`, {run['time']}: {run['machine']}.\n\n"
    return HEAD + about + "\n".join(suite(name, cases) for name, cases in run["suites"].items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, nargs="?", default=BUILD / "docs" / "speed.md")
    path = parser.parse_args().path
    path.parent.mkdir(parents=True, exist_ok=True)
    run = newest()
    path.write_text(page(run), encoding="utf-8")
    say(f"{shown(path)}: the run of {run['time']}")
    return 0


if __name__ == "__main__":
    run_main(main)
