#!/usr/bin/env python3
"""Speed and error of elementwise functions beside PyTorch's, as one table.

    python tools/function_table.py [--only TEXT] [--dtype float32] [--ports]

Times are whole calls on 16 K elements in the cache by one thread, in nanoseconds an element: the
least of turns that alternate. Errors are the largest of 20,000 numbers (160 of 40 digits, where
float64 is no yardstick) in units in the last place. `--ports` adds, for functions that run on
packs, for how many cycles a vector of 512 bits keeps the busiest of a Skylake server's ports, by
LLVM's model of it (llvm-mca): a figure for Intel's processors that needs none at hand. PyTorch and
mpmath must be installed beside facula (`make oracle`).
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import facula
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "differential" / "operators"))
from test_function_accuracy import (  # noqa: E402
    FEW,
    FUNCTIONS,
    PAIRS,
    POINTS,
    arguments,
    largest_errors,
)

ANALYSER = shutil.which("llvm-mca-19") or shutil.which("llvm-mca")
ELEMENTS, TURNS, CALLS = 16 * 1024, 15, 20
# As CMakeLists.txt has them for AVX-512.
FLAGS = """-O3 -std=gnu++20 -march=x86-64-v4 -mtune=generic -mprefer-vector-width=512
-ffp-contract=off -fno-math-errno -fno-trapping-math -DFACULA_ISA=avx512 -DFACULA_HAS_AVX2
-DFACULA_HAS_AVX512 -Isrc -Ibuild/generated -Iinclude -S -x c++ -""".split()
LOOP = """
[[gnu::flatten]] void marked_{name}_{type}({type}* out, const {type}* in, long n) {{
  using P = facula::scalar::math::Pack<{type}, facula::scalar::packs_of<{record}, {type}>()>;
  for (long i = 0; i < n; i += P::lanes) {{
    asm volatile("# LLVM-MCA-BEGIN {name} {type} %c0" ::"i"(sizeof(P) / 64));
    {record}::{entry}(P::load(in + i)).store(out + i);
    asm volatile("# LLVM-MCA-END");
  }}
}}
"""


def call_time(call):
    began = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - began) / CALLS


def nanoseconds(function, columns):
    """Of an element: facula's and PyTorch's least times."""
    operands = [[m.from_numpy(c) for c in columns] for m in (facula, torch)]
    calls = [
        lambda m=m, o=o: function(m, *o) for m, o in zip((facula, torch), operands, strict=True)
    ]
    turns = [[call_time(call) for call in calls] for _ in range(TURNS)]
    return [min(side) / len(columns[0]) * 1e9 for side in zip(*turns, strict=True)]


def rows(dtype, only):
    """(name, times of both, errors of both) of each function."""
    number = getattr(torch, dtype)
    kind = torch.empty(0, dtype=number).numpy().dtype.type
    for count, table in ((1, FUNCTIONS), (2, PAIRS)):
        for name, (function, exact, wide, intervals, *_) in table.items():
            if only not in name:
                continue
            points = POINTS if wide and dtype == "float32" else FEW
            columns = arguments(intervals, points, count, kind)
            errors = largest_errors(function, exact, wide, columns, kind)
            timed = arguments(intervals[:1], ELEMENTS, count, kind)
            yield name, nanoseconds(function, timed), errors


def records():
    """Files of src/ops by the functors with packs that they define."""
    for file in sorted((ROOT / "src" / "ops").rglob("*.cpp")):
        for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", file.read_text(), re.M | re.S):
            if "Packs packs" in body:
                yield file, name, "fast_path" if "fast_path" in body else "call"


def busiest_ports():
    """Cycles of the busiest port a vector, by (function, type); of functions of one number."""
    found, files = {}, {}
    for file, name, entry in records():
        files.setdefault(file, []).append((name, entry))
    for file, functions in files.items():
        unary = [(n, e) for n, e in functions if n in FUNCTIONS or n == "gelu_erf"]
        loops = "".join(
            LOOP.format(name=name, type=kind, record=f"facula::scalar::{name}", entry=entry)
            for name, entry in unary
            for kind in ("float", "double")
        )
        found.update(analysed(file, loops) if unary else {})
    return found


def analysed(file, loops):
    """The busiest port of each marked loop; `loops` is C++ that follows the operators' file."""
    source = (
        f'#define FACULA_KERNEL_PASS\n#include "{file.relative_to(ROOT / "src")}"\n'
        f'#include "kernels/cpu/elementwise/pointwise_loops.h"\n{loops}'
    )
    with tempfile.NamedTemporaryFile(suffix=".s") as assembly:
        command = ["g++", *FLAGS, "-o", assembly.name]
        subprocess.run(command, input=source, text=True, check=True, cwd=ROOT)
        report = subprocess.run(
            [ANALYSER, "-mcpu=skylake-avx512", "-instruction-info=0", assembly.name],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
        ).stdout  # fmt: skip
    cycles = {}
    for region in re.split(r"^\[\d+\] Code Region", report, flags=re.M)[1:]:
        name, kind, registers = re.match(r" - (\S+) (\S+) (\d+)", region).groups()
        pressures = re.search(r"per iteration:\n.*\n(.*)\n", region)[1].split()
        most = max(float(p) for p in pressures if p != "-")
        cycles[name, kind] = most / int(registers)
    return cycles


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="functions whose name contains this")
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    parser.add_argument("--ports", action="store_true", help="cycles on an Intel core, by llvm-mca")
    options = parser.parse_args()
    if options.ports and not ANALYSER:
        parser.error("--ports: expected llvm-mca or llvm-mca-19 (Debian: llvm-19) on the path")
    for module in (facula, torch):
        module.set_num_threads(1)
    ports = busiest_ports() if options.ports else {}
    kind = {"float32": "float", "float64": "double"}[options.dtype]
    print(f"{options.dtype} | ns | PyTorch's | ratio | error | PyTorch's | cycles")
    for name, (ours, theirs), errors in rows(options.dtype, options.only):
        cycles = f"{ports[name, kind]:.1f}" if (name, kind) in ports else "-"
        print(f"{name} | {ours:.2f} | {theirs:.2f} | {theirs / ours:.2f} | "
              f"{errors[0]:.2f} | {errors[1]:.2f} | {cycles}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
