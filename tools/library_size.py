#!/usr/bin/env python3
"""Prints the size of the library by operator family and folder.

    python tools/library_size.py [--type release]

Sizes are of object files before linking: code that several files share (inline functions) counts
in each of them, so the sum is above the size of the linked library, which is printed last.
"""

import argparse
import collections
from pathlib import Path

from console import BUILD, ROOT, run_main
from objects import library_objects, sections


def family_of(item):
    """Folder and stem of a source, instruction sets taken together: `kernels/cpu/unary`."""
    source = item.source
    for base in (ROOT / "src", ROOT / "python", ROOT, BUILD):
        if source.is_relative_to(base):
            source = source.relative_to(base)
            break
    # Files that the build makes for one instruction set are named STEM.ISA.cpp or STEM_ISA.cpp.
    stem = source.stem.split(".")[0]
    for isa in ("_base", "_avx2", "_avx512"):
        stem = stem.removesuffix(isa)
    return str(source.parent / stem)


def table(items):
    """Bytes by family, the biggest first."""
    sizes = collections.Counter()
    for item in items:
        sizes[family_of(item)] += sum(sections(item.path)[:2])
    return sizes.most_common()


def by_folder(rows):
    """Bytes by folder."""
    sizes = collections.Counter()
    for family, size in rows:
        sizes[str(Path(family).parent)] += size
    return sizes.most_common()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--type", default="release")
    parser.add_argument("--top", type=int, default=40, help="how many families to show")
    options = parser.parse_args()
    rows = table(library_objects(options.type))
    print("kB of code and data by family")
    for family, size in rows[: options.top]:
        print(f"{size / 1000:10.1f}  {family}")
    if len(rows) > options.top:
        rest = sum(size for _, size in rows[options.top :])
        print(f"{rest / 1000:10.1f}  ({len(rows) - options.top} smaller families)")
    print("kB by folder")
    for folder, size in by_folder(rows):
        print(f"{size / 1000:10.1f}  {folder}")
    for file in sorted((BUILD / options.type).rglob("*.so*")):
        if not file.is_symlink():
            print(f"{file.stat().st_size / 1000:10.1f}  {file.relative_to(BUILD)} (file)")
    return 0


if __name__ == "__main__":
    run_main(main)
