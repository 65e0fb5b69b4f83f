#!/usr/bin/env python3
"""Compares a conformance result with the floor: passing cases may rise, never fall.

    python tools/conformance_floor.py RESULT.json [--update]

The floor is tests/conformance_floor.json: for each database, how many cases passed.
"""

import argparse
import json
import os
from pathlib import Path

from console import ROOT, Failure, run_main, say, shown

FLOOR = ROOT / "tests" / "conformance_floor.json"


def read_floor():
    """The floor as {database: passing cases}; empty when there is none yet."""
    if not FLOOR.exists():
        return {}
    return read_json(FLOOR)


def read_json(path):
    """A JSON file's content; raises Failure with the reason when it cannot be read."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Failure(f"{shown(path)} cannot be read: {error}") from None


def write_floor(floor):
    """Replaces the floor file."""
    partial = FLOOR.with_suffix(".partial")
    partial.write_text(json.dumps(floor, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(partial, FLOOR)


def check(result, update=False):
    """Prints a result beside the floor; returns whether it is not below. Updates only upwards."""
    report, floor = read_json(result), read_floor()
    what, cases = report["what"], report["cases"]
    passed = sum(case["verdict"] == "pass" for case in cases)
    least = floor.get(what, 0)
    say(f"conformance {what}: {passed} of {len(cases)} cases pass, the floor is {least}")
    if passed < least:
        say(f"conformance {what}: {least - passed} cases fewer than the floor")
        return False
    if passed > least and update:
        write_floor({**floor, what: passed})
        say(f"conformance {what}: floor raised to {passed}")
    elif passed > least:
        say(f"conformance {what}: raise the floor with --update")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result", type=Path)
    parser.add_argument("--update", action="store_true", help="raise the floor to this result")
    options = parser.parse_args()
    return 0 if check(options.result, options.update) else 1


if __name__ == "__main__":
    run_main(main)
