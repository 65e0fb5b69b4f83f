"""What a run is summed up to: geometric means, shares of slow cases, bandwidth, a JSON file."""

import json
import os
import platform
import statistics
import subprocess
import time
from pathlib import Path

from bench import harness, limits
from bench.harness import geomean_line

LIMITS = (0.9, 0.7)
FURTHEST = 4  # cases of a family that are named as far from the machine's limit
ROOT = Path(__file__).resolve().parents[1]


def cpu_name():
    """The processor's model name, for the head of a report."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"


def describe(modules):
    """The head of a report: what was measured, and where."""
    versions = ", ".join(f"{n} {getattr(m, '__version__', '?')}" for n, m in modules.items())
    return (
        f"{versions}; Python {platform.python_version()}; {cpu_name()}, "
        f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}"
    )


def commit():
    """The short name of the commit that is measured, with a mark where the tree was changed;
    "unknown" without git or outside of a clone."""
    command = ["git", "describe", "--always", "--dirty=+"]
    try:
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return "unknown"
    return run.stdout.strip() or "unknown"


def share_below(results, peer, limit):
    """The part of the cases whose ratio is below `limit`."""
    found = [r.ratios[peer] for r in results if peer in r.ratios]
    return sum(x < limit for x in found) / len(found) if found else 0.0


def summary(results, names):
    """Lines: geometric means by family and threads, shares of slow cases, the slow ones."""
    lines = []
    for number in sorted({r.threads for r in results}):
        here = [r for r in results if r.threads == number]
        suffix = f", {number} thread{'s' * (number > 1)}" if number else ""
        families = list(dict.fromkeys(r.family for r in here))
        for family in families if len(families) > 1 else ():
            of_family = [r for r in here if r.family == family]
            lines.append(geomean_line(of_family, names, f"  {family}{suffix}"))
        lines.append(geomean_line(here, names, f"geometric mean{suffix}"))
        for peer in names[1:]:
            parts = ", ".join(
                f"{share_below(here, peer, limit):.1%} under {limit}x" for limit in LIMITS
            )
            lines.append(f"  of {len(here)} cases against {peer}: {parts}")
    lines += slow_cases(results, names)
    return lines


def slow_cases(results, names):
    """Lines naming the cases under the first limit, the slowest first."""
    lines = []
    for peer in names[1:]:
        slow = [r for r in results if r.ratios.get(peer, 1.0) < LIMITS[0]]
        slow.sort(key=lambda r: r.ratios[peer])
        for r in slow:
            low, high = r.spread.get(peer, (0, 0))
            where = f" /{r.threads}" if r.threads else ""
            lines.append(
                f"  {r.ratios[peer]:.2f}x ({low:.2f} to {high:.2f})  {r.family}: {r.name}{where}"
            )
    return lines


def limit_lines(results, name):
    """Lines: what part of the machine's limit a module reaches, by family; the cases furthest."""

    def reached(result):
        return result.of_limit(name)

    lines = []
    for number in sorted({r.threads for r in results if r.least}):
        here = [r for r in results if r.least and r.threads == number and reached(r)]
        copies = limits.copy_speeds(max(1, number))
        shown = ", ".join(
            f"{size // 1024} KB {speed / 1e9:.0f}"
            for size, speed in list(zip(limits.SIZES, copies, strict=True))[::3]
        )
        threads = f"{number} thread{'s' * (number > 1)}" if number else "as it is"
        lines.append(f"of the machine's limit, {threads} (copies in GB/s: {shown}), median of:")
        for family in dict.fromkeys(r.family for r in here):
            found = sorted((r for r in here if r.family == family), key=reached)
            far = "; ".join(f"{r.name} {reached(r):.1%}" for r in found[:FURTHEST])
            lines.append(
                f"  {family:<16}{statistics.median(map(reached, found)):>5.0%}  least: {far}"
            )
    unknown = {f"{r.family}: {r.name}": r.unknown for r in results if r.unknown}
    return lines + [f"  unknown for {case}: {why}"[:200] for case, why in unknown.items()]


def as_json(result):
    """A Result as JSON can hold it, in four digits; the time of a failure is its text."""
    found = result._asdict()
    found["seconds"] = {
        n: rounded(s) if isinstance(s, float) else f"{type(s).__name__}: {s}"
        for n, s in result.seconds.items()
    }
    found["ratios"] = {n: rounded(r) for n, r in result.ratios.items()}
    found["spread"] = {n: [rounded(r) for r in pair] for n, pair in result.spread.items()}
    if not result.unknown:
        del found["unknown"]
    return found


def rounded(value):
    """A number to four significant digits, so that files that are kept stay small."""
    return float(f"{value:.4g}")


def as_lines(content):
    """JSON text with a line for each result, so that two runs can be compared by line."""
    suites = ",\n".join(
        f"{json.dumps(suite)}: [\n" + ",\n".join(map(json.dumps, rows)) + "\n]"
        for suite, rows in content["suites"].items()
    )
    head = json.dumps({k: v for k, v in content.items() if k != "suites"}, indent=1)
    return head[:-2] + ',\n "suites": {\n' + suites + "\n}}\n"


def save(path, modules, suites):
    """Writes results of suites to `path`; into COMMIT.json where it is a folder."""
    path = Path(path)
    if path.is_dir():
        path /= f"{commit()}.json"
    names = list(modules)
    content = {
        "commit": commit(),
        "time": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "machine": describe(modules),
        "clock": next(n for n, c in harness.CLOCKS.items() if c is harness.clock),
        "modules": names,
        "geomean": {
            suite: {
                peer: statistics.geometric_mean(found)
                for peer in names[1:]
                if (found := [r.ratios[peer] for r in results if peer in r.ratios])
            }
            for suite, results in suites.items()
        },
        "suites": {suite: [as_json(r) for r in results] for suite, results in suites.items()},
    }
    path.write_text(as_lines(content), encoding="utf-8")
    print(f"results in {path}")
