"""`python -m bench [--modules facula,torch] [--only TABLE,...] [--case TEXT] [--json FILE]`."""

import argparse
import sys

from bench import (
    autograd,
    busy,
    compiled,
    distributed,
    files,
    harness,
    kernels,
    loader,
    objects,
    overhead,
    peak,
    repeat,
    report,
    startup,
    training,
)

TABLES = {
    "overhead": overhead.CASES,
    "objects": objects.CASES,
    "kernels": kernels.CASES,
    "training": training.CASES,
    "loader": loader.CASES,
    "files": files.CASES,
}
SUITES = ("startup", "autograd", "memory", "busy", "compile", "distributed", *TABLES)


def parse_options():
    """The command line's options."""
    parser = argparse.ArgumentParser(prog="bench", description=harness.__doc__.splitlines()[0])
    parser.add_argument(
        "--modules",
        default="facula,torch",
        help="modules by comma; ratios are relative to the first",
    )
    parser.add_argument("--only", default="startup,overhead,autograd,objects,training")
    parser.add_argument("--case", help="only cases whose family or name contains this")
    parser.add_argument("--threads", default="", help="numbers of threads by comma, as 1,2")
    parser.add_argument(
        "--clock", default="wall", choices=harness.CLOCKS, help="cpu: of all threads"
    )
    parser.add_argument("--full", action="store_true", help="more sizes and dtypes")
    parser.add_argument(
        "--runs", type=int, default=1, help="so many runs, each a process, and each case's median"
    )
    parser.add_argument("--json", help="a file for the results, or a folder: then COMMIT.json")
    options = parser.parse_args()
    options.only = options.only.split(",")
    options.modules = options.modules.split(",")
    options.threads = [int(n) for n in options.threads.split(",") if n]
    unknown = set(options.only) - set(SUITES)
    if unknown:
        parser.error(f"unknown table {sorted(unknown)[0]!r}; there are {', '.join(SUITES)}")
    return options


def run_suite(suite, modules, options):
    """Runs one suite and prints its table; its results."""
    if suite == "autograd":
        return autograd.run_autograd(modules, options.case)
    if suite == "memory":
        return peak.run_memory(list(modules), options.case)
    if suite == "compile":
        return compiled.run_suite(modules, options.case)
    if suite == "distributed":
        return distributed.run_distributed(list(modules), options.case)
    if suite == "busy":
        return busy.run_busy(modules, options.case)
    if suite not in TABLES:
        return []
    cases = [c for c in TABLES[suite] if options.full or not c.full]
    many = (1, 2) if suite in ("kernels", "training") else (0,)
    threads = options.threads or many
    return harness.run_table(suite, cases, modules, options.case, threads, suite == "kernels")


def main():
    options = parse_options()
    harness.use_clock(options.clock)
    if options.runs > 1:
        suites = repeat.run_repeatedly(sys.argv[1:], options.runs, options.modules)
        if options.json:
            report.save(options.json, harness.load_modules(options.modules), suites)
        return 0
    suites = {}
    # Imports are timed in processes of their own, and before this one holds the modules' memory.
    if "startup" in options.only and not options.case:
        suites["startup"] = startup.run_startup(options.modules)
    modules = harness.load_modules(options.modules)
    print(report.describe(modules) + "\n")
    for suite in options.only:
        results = run_suite(suite, modules, options)
        if not results:
            continue
        suites[suite] = results
        lines = report.summary(results, options.modules) if len(modules) > 1 else []
        print("\n".join(lines + report.limit_lines(results, options.modules[0])) + "\n")
    if options.json:
        report.save(options.json, modules, suites)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except harness.Unavailable as error:
        sys.exit(f"bench: cannot import {error}")
