"""Several runs in processes of their own, each case's median: memory lies elsewhere every time."""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import harness, report


def run_once(arguments, number, folder):
    """One run in a process of its own; the suites that it measured, as JSON."""
    path = Path(folder) / f"{number}.json"
    command = [sys.executable, "-m", "bench", *arguments, "--runs", "1", "--json", str(path)]
    subprocess.run(command, check=True)
    return json.loads(path.read_text(encoding="utf-8"))["suites"]


def middle(values):
    """The median of what was measured; the first failure where there was one."""
    failed = [v for v in values if isinstance(v, str)]
    return RuntimeError(failed[0]) if failed else statistics.median(values)


def merge(runs):
    """One Result of the same case's results in all runs; its spread is that of the runs."""
    first = runs[0]
    return harness.Result(
        first["name"],
        {n: middle([r["seconds"][n] for r in runs]) for n in first["seconds"]},
        {n: statistics.median(r["ratios"][n] for r in runs) for n in first["ratios"]},
        family=first["family"],
        threads=first["threads"],
        least=statistics.median(r["least"] for r in runs),
        spread={
            n: (min(r["ratios"][n] for r in runs), max(r["ratios"][n] for r in runs))
            for n in first["ratios"]
        },
        unknown=first.get("unknown", ""),
    )


def geomeans(rows, peer):
    """The geometric mean of each run, in rising order."""
    cases = [[r["ratios"][peer] for r in case] for case in rows if peer in case[0]["ratios"]]
    return sorted(statistics.geometric_mean(run) for run in zip(*cases, strict=True))


def finished_runs(arguments, count):
    """The suites of so many runs, or of those that ended before Ctrl-C."""
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        while len(runs) < count:
            try:
                runs.append(run_once(arguments, len(runs), folder))
            except KeyboardInterrupt:
                if not runs:
                    raise
                print(f"\ninterrupted after {len(runs)} of {count} runs")
                break
    return runs


def run_repeatedly(arguments, count, names):
    """Runs `python -m bench ARGUMENTS` so many times; the merged results by suite.

    Prints, for each suite, the medians and the geometric means of the runs. Ctrl-C ends with the
    runs that are done.
    """
    runs = finished_runs(arguments, count)
    suites = {}
    for suite in runs[0]:
        cases = zip(*(run[suite] for run in runs), strict=True)
        rows = [case for case in cases if keeps_ratios(case)]
        suites[suite] = [merge(case) for case in rows]
        print(f"\n{suite}: medians of {len(runs)} runs")
        print(harness.header(suite, names))
        for result in suites[suite]:
            print(harness.row(result, names))
        print("\n".join(report.summary(suites[suite], names)))
        for peer in names[1:]:
            found = ", ".join(f"{g:.2f}x" for g in geomeans(rows, peer))
            print(f"  the runs' geometric means against {peer}: {found}")
    return suites


def keeps_ratios(case):
    """Whether all runs compared the same modules."""
    return all(r["ratios"].keys() == case[0]["ratios"].keys() for r in case)
