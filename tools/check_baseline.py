#!/usr/bin/env python3
"""Checks that baseline code has baseline instructions only.

    python tools/check_baseline.py [--type release]

Two ways in which a newer instruction reaches a processor that lacks it:
1. a file built for the baseline contains one (functions whose names tell their instruction set
   are chosen at run time and may);
2. a file built for a newer set defines an out-of-line function that baseline files define, too,
   and stands before them in the link: the linker keeps the first copy.
"""

import argparse
import collections
import re
import subprocess

from console import BUILD, Failure, run_main, say, shown
from objects import library_objects, output_of

FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
# Instructions that begin with v and are not vector ones, and newer ones that do not.
NOT_VECTOR = re.compile(
    r"^(ver[rw]|vm(call|launch|resume|read|write|xoff|xon|ptrld|ptrst|clear|func))"
)
# tzcnt is left out: older processors run it as bsf, which gives the same for every number but zero,
# and compilers write it for numbers that are not.
SCALAR_NEWER = {
    "andn",
    "bextr",
    "blsi",
    "blsr",
    "blsmsk",
    "bzhi",
    "mulx",
    "pdep",
    "pext",
    "rorx",
    "sarx",
    "shlx",
    "shrx",
    "lzcnt",
    "movbe",
}
NEWER_NAME = re.compile(r"avx|amx|fma")


def is_newer(mnemonic, operands):
    """Whether x86-64-v2 lacks an instruction."""
    if "%ymm" in operands or "%zmm" in operands or mnemonic in SCALAR_NEWER:
        return True
    return mnemonic.startswith("v") and not NOT_VECTOR.match(mnemonic)


def newer_instructions(path):
    """Functions of an object file with a newer instruction: {function: example}."""
    found, function = {}, ""
    command = ["objdump", "-d", "-C", "--no-show-raw-insn", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        for line in process.stdout:
            head = FUNCTION.match(line)
            if head:
                function = head[1]
                continue
            part = line.rstrip().split("\t", 1)
            words = part[1].split(None, 1) if len(part) == 2 else []
            if words and is_newer(words[0], words[1] if len(words) == 2 else ""):
                found.setdefault(function, part[1].strip())
    if process.returncode:
        raise Failure(f"objdump failed on {shown(path)}")
    return {name: text for name, text in found.items() if not NEWER_NAME.search(name)}


def weak_functions(path):
    """Names of functions that the linker may merge with copies of other files."""
    lines = output_of(["nm", "--defined-only", path]).splitlines()
    return {words[2] for words in map(str.split, lines) if len(words) == 3 and words[1] in "Wu"}


def shared_functions(items):
    """Out-of-line functions that both baseline and newer files define: {name: newer file}."""
    baseline = set().union(*(weak_functions(i.path) for i in items if i.is_baseline), set())
    found = {}
    for item in items:
        if not item.is_baseline:
            for name in weak_functions(item.path) & baseline:
                found.setdefault(name, item.path)
    return found


def link_order(build_type):
    """Whether the library's link names baseline files first, then newer sets in order."""
    text = (BUILD / build_type / "build.ninja").read_text()
    link = next(
        line
        for line in text.splitlines()
        if line.startswith("build ") and "libfacula.so: CXX_SHARED_LIBRARY_LINKER" in line
    )
    baseline = ["facula_call", "facula_common", "facula_loops", "facula_base"]
    sets = [*baseline, "facula_avx2", "facula_avx512"]
    ranks = [
        sets.index(name) for name in re.findall(r"CMakeFiles/(\w+)\.dir/", link) if name in sets
    ]
    return ranks == sorted(ranks)


def demangle(names):
    """Readable names of symbols."""
    if not names:
        return []
    text = subprocess.run(
        ["c++filt"], input="\n".join(names), capture_output=True, text=True
    ).stdout
    return text.splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--type", default="release")
    parser.add_argument("--show", type=int, default=20, help="how many findings to print of a kind")
    options = parser.parse_args()
    items = library_objects(options.type)
    kinds = collections.Counter(i.is_baseline for i in items)
    findings = [
        f"{shown(i.path)}: {function}: {text}"
        for i in items
        if i.is_baseline
        for function, text in newer_instructions(i.path).items()
    ]
    shared = shared_functions(items)
    ordered = link_order(options.type)
    print("".join(f"{line[:200]}\n" for line in findings[: options.show]), end="")
    if shared and not ordered:
        print("\n".join(demangle(list(shared))[: options.show]))
    say(
        f"baseline check: {kinds[True]} baseline files, {kinds[False]} for newer sets; "
        f"{len(findings)} functions with newer instructions, {len(shared)} shared functions, "
        f"linked in {'the right' if ordered else 'the WRONG'} order"
    )
    return 1 if findings or (shared and not ordered) else 0


if __name__ == "__main__":
    run_main(main)
