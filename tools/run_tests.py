#!/usr/bin/env python3
"""Runs test suites and sums what passed and failed.

    python tools/run_tests.py [--type KIND] [--cpu SET] [--python PYTHON] [--jobs N] SUITE...
    python tools/run_tests.py --summary          # the sum of all suites that ran since --reset

KIND is a type of tools/build.py. Suites: cpp (GoogleTest), python (tests/python), differential
(tests/differential, needs PyTorch), or a folder of the latter two such as python/operators.
Each leaves a JUnit report in build/reports. The last line is `N passed, N failed, N skipped`.
With more than one job (by itself as many as there are processors) pytest-xdist shares Python tests
out.
"""

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import target_python
from console import BUILD, ROOT, Failure, job_count, run_main, say, shown

REPORTS = BUILD / "reports"
SECONDS = {"cpp": 900, "python": 1800, "differential": 1800}
PYTEST_FOUND_NOTHING = 5
SLOW = ("asan", "tsan", *target_python.DEBIAN)  # types whose tests take several times as long


class Counts(NamedTuple):
    """How many test cases ended how."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other):
        return Counts(*(a + b for a, b in zip(self, other, strict=True)))

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def is_skipped(case):
    """Whether a report's case was skipped: pytest tells by a child, GoogleTest by a status."""
    return case.find("skipped") is not None or case.get("status") == "notrun"


def count_report(path):
    """Counts of one JUnit report; one failure when there is no whole report (a crash)."""
    try:
        cases = list(ET.parse(path).getroot().iter("testcase"))
    except (OSError, ET.ParseError):
        return Counts(failed=1)
    failed = sum(c.find("failure") is not None or c.find("error") is not None for c in cases)
    skipped = sum(is_skipped(c) for c in cases)
    return Counts(len(cases) - failed - skipped, failed, skipped)


def preload_libraries(kind):
    """What Python must load first for a sanitized extension: the run-time of the sanitizers."""
    found = []
    sanitizers = {"asan": ("libasan.so", "libubsan.so"), "tsan": ("libtsan.so",)}[kind]
    for name in (*sanitizers, "libstdc++.so"):
        compiler = os.environ.get("CXX", "g++").split()[-1]
        out = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True)
        path = Path(out.stdout.strip())
        if not path.is_absolute():
            raise Failure(f"{name} was not found; install g++ with its sanitizers")
        found.append(str(path.resolve()))
    return " ".join(found)


def environment(kind, suite, cpu):
    """The environment of a suite: where facula is, its instruction set, the sanitizers' options."""
    env = {**os.environ, "PYTHONPATH": str(BUILD / kind / "python"), "MPLBACKEND": "Agg"}
    if cpu:
        env["FACULA_CPU_CAPABILITY"] = cpu
    if kind in target_python.DEBIAN:
        env["PYTHONPATH"] += f"{os.pathsep}{target_python.pure_packages(kind)}"
    if kind == "asan":
        env["ASAN_OPTIONS"] = "detect_leaks=0:allocator_may_return_null=1:detect_odr_violation=0"
        env["UBSAN_OPTIONS"] = "print_stacktrace=1"
    if kind == "tsan":
        # Python itself is not instrumented: tools/tsan.supp says what is known of it. Children of a
        # fork may start threads.
        env["TSAN_OPTIONS"] = (
            f"suppressions={ROOT / 'tools' / 'tsan.supp'}:die_after_fork=0:second_deadlock_stack=1"
        )
    if kind in ("asan", "tsan") and suite != "cpp":
        env["LD_PRELOAD"] = preload_libraries(kind)
        env["PYTHONMALLOC"] = "malloc"
    return env


def cpp_command(kind, report, extra):
    """How to run the C++ tests."""
    built = [p for p in (BUILD / kind).rglob("facula_tests") if p.is_file()]
    if not built:
        raise Failure(f"the C++ tests are not built: tools/build.py --type {kind} --tests")
    run = target_python.emulator(kind) if kind in target_python.DEBIAN else []
    return [*run, built[0], f"--gtest_output=xml:{report}", "--gtest_brief=1", *extra]


def pytest_command(kind, python, suite, report, extra):
    """How to run a folder of Python tests."""
    folder = ROOT / "tests" / suite
    if not folder.is_dir():
        raise Failure(f"there is no {shown(folder)}")
    cross = kind in target_python.DEBIAN
    return [
        *(target_python.python_command(kind) if cross else [python]),
        "-m",
        "pytest",
        folder,
        f"--junitxml={report}",
        "-p",
        "no:cacheprovider",
        *extra,
    ]


def default_jobs(kind):
    """As many processes as compilers; one where pytest is that of another system."""
    return 1 if kind in target_python.DEBIAN else job_count()


def shared_out(jobs, extra):
    """Options by which so many processes share tests out; none for one, or for a debugger."""
    alone = jobs < 2 or {"--pdb", "-s", "--collect-only"} & set(extra)
    return [] if alone else ["-n", jobs, "--dist", "worksteal"]


def run_suite(suite, kind, cpu, python, jobs, extra):
    """Runs one suite; returns its counts, in which a crash or a time-out is a failure."""
    marks = [
        *([kind] if kind != "release" else []),
        *([cpu] if cpu else []),
        *(["compiled"] if "--compiled" in extra else []),
    ]
    name = "-".join([suite.replace("/", "-"), *marks])
    report = REPORTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    make = (
        (lambda: cpp_command(kind, report, extra))
        if suite == "cpp"
        else (lambda: pytest_command(kind, python, suite, report, shared_out(jobs, extra) + extra))
    )
    command = [str(c) for c in make()]
    say(f"{name} tests")
    began = time.monotonic()
    try:
        code = subprocess.run(
            command,
            cwd=ROOT,
            env=environment(kind, suite, cpu),
            stdin=subprocess.DEVNULL,
            timeout=SECONDS[suite.split("/")[0]] * (4 if kind in SLOW else 1),
        ).returncode
    except subprocess.TimeoutExpired:
        code = -1
        say(f"{name} tests: stopped after {time.monotonic() - began:.0f} s")
    counts = count_report(report)
    if code not in (0, PYTEST_FOUND_NOTHING) and not counts.failed:
        say(f"{name} tests: ended with status {code}")
        counts += Counts(failed=1)
        report.unlink(missing_ok=True)
    say(f"{name} tests: {counts} ({time.monotonic() - began:.0f} s)")
    if not report.exists():
        report.write_text("<testsuite><testcase name='crash'><failure/></testcase></testsuite>")
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SECONDS))
    parser.add_argument("--type", default="release")
    parser.add_argument("--cpu", help="the instruction set in force: default, avx2, avx512")
    parser.add_argument("--python", default=sys.executable, help="runs the Python suites")
    parser.add_argument("--jobs", type=int, default=0, help="processes that share Python tests out")
    parser.add_argument("--compiled", action="store_true", help="each Python test compiled")
    parser.add_argument("--summary", action="store_true", help="sum the reports, run nothing")
    parser.add_argument("--reset", action="store_true", help="forget earlier reports first")
    parser.add_argument("--options", default="", help="further options of the suite's runner")
    options = parser.parse_args()
    # Background jobs of a shell ignore Ctrl-C, and so would the programs that tests interrupt.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    unknown = {suite for suite in options.suites if suite.split("/")[0] not in SECONDS}
    if unknown:
        raise Failure(f"unknown suite {sorted(unknown)[0]!r}; there are {', '.join(SECONDS)}")
    if options.reset:
        shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True, exist_ok=True)
    total, jobs = Counts(), options.jobs or default_jobs(options.type)
    for suite in options.suites:
        extra = [*shlex.split(options.options), *(["--compiled"] if options.compiled else [])]
        total += run_suite(suite, options.type, options.cpu, options.python, jobs, extra)
    if options.summary:
        for report in sorted(REPORTS.glob("*.xml")):
            total += count_report(report)
    print(total, flush=True)
    return 1 if total.failed or not any(total) else 0


if __name__ == "__main__":
    run_main(main)
