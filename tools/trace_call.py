#!/usr/bin/env python3
"""Prints the way of one call: operators, layers, kernels, each with its place in the source.

    .venv/bin/python tools/trace_call.py "a + b"
    .venv/bin/python tools/trace_call.py --setup "a = facula.ones(3, requires_grad=True)" "a.exp()"

The statement may use facula, F (facula.nn.functional), and the tensors a and b of 2 by 3 numbers.
The lines are those of FACULA_DEBUG=4; below each call stands where its record is written, and
below each layer the function that serves it: a layer's for every operator, or the kernel that the
record names.
"""

import argparse
import os
import re
import subprocess
import sys

from console import BUILD, ROOT, Failure, run_main

PROGRAM = """
import facula
from facula import _C
F = facula.nn.functional
a, b = facula.ones(2, 3), facula.full((2, 3), 2.0)
{setup}
code = compile({statement!r}, "<the statement>", "exec")
_C._set_debug_level(4)
exec(code)
_C._set_debug_level(0)
"""
CALL = re.compile(r"^facula 1: +(?:\w+::)?([\w.]+)\(")
LAYER = re.compile(r"^facula 2: +layer (\w+)")
RECORD = re.compile(r"^OP\(\w+\)")
SCHEMA = re.compile(r'\.schema\s*=\s*"([\w.]+)\(')
KERNEL = re.compile(r"\.(cpu|any)\s*=\s*(.+?),?$")
WIRING = re.compile(r"case Layer::(\w+):\s*(?=(?:case Layer::\w+:\s*)*return &(\w+);)")


class Record:
    """Where an operator's record stands, and the kernel that it names."""

    def __init__(self, place, kernel):
        self.place, self.kernel = place, kernel


def places(folder):
    """Every line of the C++ files of a folder, as ("src/...:12", text)."""
    for path in sorted((ROOT / folder).rglob("*.cpp")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield f"{path.relative_to(ROOT)}:{number}", line


def records():
    """The records by name: {"add.Tensor": Record}."""
    found, begins, current = {}, "", None
    for place, line in places("src/ops"):
        if RECORD.match(line):
            begins, current = place, None
        if match := SCHEMA.search(line):
            current = found[match[1]] = Record(begins, "")
        if current and (match := KERNEL.search(line)):
            current.kernel = f"{match[2]}  [{place}]"
    return found


def handlers():
    """The function that serves each layer: {"Autograd": "autograd_layer  [src/...:12]"}."""
    wiring = (ROOT / "src" / "transforms" / "layers.cpp").read_text()
    names = {layer: function for layer, function in WIRING.findall(wiring)}
    defined = {
        function: place
        for place, line in places("src")
        for function in names.values()
        if re.match(rf"void {function}\(", line)
    }
    return {layer: f"{f}  [{defined[f]}]" for layer, f in names.items() if f in defined}


def record_of(name, known):
    """The record of an operator, or of the one whose in-place or out= variant it is."""
    base, _, overload = name.partition(".")
    choices = [name, base.removesuffix("_") + (f".{overload}" if overload else ""), base]
    choices += [f"{base}.Tensor", f"{base.removesuffix('_')}.Tensor"]
    return next((known[c] for c in choices if c in known), None)


def annotated(lines):
    """The lines, with what the source says of each below it."""
    known, layer_handlers, calls = records(), handlers(), {}
    for line in lines:
        yield line
        indent = len(line) - len(line.partition(":")[2].lstrip())
        if match := CALL.match(line):
            calls[indent + 2] = record = record_of(match[1], known)
            if record:
                yield " " * indent + f"record  [{record.place}]"
        if match := LAYER.match(line):
            record = calls.get(indent)
            if match[1] in layer_handlers:
                yield " " * indent + layer_handlers[match[1]]
            elif record and record.kernel:
                yield " " * indent + f"kernel {record.kernel}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("statement", help='what to run, "a + b"')
    parser.add_argument("--setup", default="", help="what to run before, without printing")
    parser.add_argument("--type", default="release", help="which build (release, quick, debug)")
    options = parser.parse_args()
    package = BUILD / options.type / "python"
    if not package.is_dir():
        raise Failure(f"there is no {options.type} build: make build")
    program = PROGRAM.format(setup=options.setup, statement=options.statement)
    env = {**os.environ, "PYTHONPATH": str(package), "FACULA_DEBUG": "0"}
    run = subprocess.run(
        [sys.executable, "-c", program], env=env, stderr=subprocess.PIPE, text=True
    )
    for line in annotated(run.stderr.splitlines()):
        print(line)
    return run.returncode


if __name__ == "__main__":
    run_main(main)
