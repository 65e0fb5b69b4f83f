"""`python -m bench [--modules facula,torch] [--only startup,overhead,...] [--case TEXT]`."""

import argparse
import os
import platform
import sys

from bench import harness, kernels, objects, overhead, startup, training

TABLES = {
    "overhead": overhead.CASES,
    "objects": objects.CASES,
    "kernels": kernels.CASES,
    "training": training.CASES,
}


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


def main():
    parser = argparse.ArgumentParser(prog="bench", description=harness.__doc__.splitlines()[0])
    parser.add_argument(
        "--modules",
        default="facula,torch",
        help="modules by comma; ratios are relative to the first",
    )
    parser.add_argument("--only", default="startup,overhead,objects,training")
    parser.add_argument("--case", help="only cases whose name contains this")
    parser.add_argument("--threads", type=int, help="threads of every module")
    options = parser.parse_args()
    names = options.modules.split(",")
    parts = options.only.split(",")
    unknown = set(parts) - {"startup", *TABLES}
    if unknown:
        parser.error(
            f"unknown table {sorted(unknown)[0]!r}; there are startup, {', '.join(TABLES)}"
        )
    # Imports are timed in processes of their own, and before this one holds the modules' memory.
    if "startup" in parts and not options.case:
        startup.run_startup(names)
    modules = harness.load_modules(names)
    if options.threads:
        for module in modules.values():
            module.set_num_threads(options.threads)
    print(describe(modules) + "\n")
    for part in parts:
        if part in TABLES:
            harness.run_table(part, TABLES[part], modules, options.case)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except harness.Unavailable as error:
        sys.exit(f"bench: cannot import {error}")
