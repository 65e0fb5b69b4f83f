"""`python -m bench.bits`: whether results hang on threads or on the processor.

Runs every case of the tables of kernels by 1, 2 and 3 threads and prints a digest of its results,
which must be the same. `--save FILE` keeps the digests, and `--against FILE` compares them with
those that another processor of the same instruction set gave (kept in `bench/results`).

    python -m bench.bits --against bench/results/bits-avx512.tsv

Those digests hold for all processors with AVX-512 whose bfloat16 does not go by tiles (AMX).
"""

import argparse
import hashlib
import sys
from pathlib import Path

import facula

from bench import report
from bench.harness import load_modules, strided
from bench.kernels import CASES
from bench.limits import tensors_in

THREADS = (1, 2, 3)
# Decompositions call LAPACK, a library that has kernels of its own for each processor.
OF_A_LIBRARY = ("linalg",)


def digest(result):
    """Sixteen hexadecimal digits of the numbers of all tensors in a result; any NaN is one NaN."""
    found = hashlib.sha256()
    for tensor in tensors_in(result):
        numbers = strided(tensor.detach()).contiguous()
        if numbers.is_floating_point():
            numbers = numbers.where(~numbers.isnan(), facula.ones_like(numbers) * 77)
        if numbers.is_complex():
            numbers = facula.view_as_real(numbers.resolve_conj())
        found.update(f"{tuple(numbers.shape)} {numbers.dtype}".encode())
        found.update(
            numbers.reshape(-1).view(facula.uint8).numpy().tobytes() if numbers.numel() else b""
        )
    return found.hexdigest()[:16]


def digests_of(case, threads):
    """The digest of a case by each number of threads; each starts from the same random state."""
    found = {}
    for number in threads:
        facula.set_num_threads(number)
        facula.manual_seed(0)
        found[number] = digest(case.make(facula)())
    return found


def read(path):
    """Case -> digest of a kept file; its first line says what made it."""
    with open(path, encoding="utf-8") as lines:
        return dict(line.rstrip("\n").split("\t") for line in lines if not line.startswith("#"))


def main():
    parser = argparse.ArgumentParser(prog="bench.bits", description=__doc__.splitlines()[0])
    parser.add_argument("--case", help="only cases whose family or name contains this")
    parser.add_argument("--save", metavar="FILE", help="keep the digests")
    parser.add_argument("--against", metavar="FILE", help="compare with kept digests")
    options = parser.parse_args()
    if options.against and not Path(options.against).is_file():
        parser.error(f"--against: there is no file {options.against}")
    head = report.describe(load_modules(["facula"]))
    head += f"; {facula.backends.cpu.get_cpu_capability()}"
    kept = read(options.against) if options.against else {}
    lines, by_threads, elsewhere = [], [], []
    for case in CASES:
        name = f"{case.family}: {case.name}"
        if options.case and options.case not in name:
            continue
        found = digests_of(case, THREADS)
        lines.append(f"{name}\t{found[1]}")
        if len(set(found.values())) > 1:
            by_threads.append(name)
        if kept.get(name, found[1]) != found[1] and case.family not in OF_A_LIBRARY:
            elsewhere.append(name)
        print(f"{name:<64}{found[1]}", flush=True)
    print(f"\n{head}\n{len(lines)} cases")
    print(f"{len(by_threads)} differ by threads: {', '.join(by_threads) or '-'}")
    if options.against:
        print(f"{len(elsewhere)} differ from {options.against}: {', '.join(elsewhere) or '-'}")
    if options.save:
        with open(options.save, "w", encoding="utf-8") as file:
            print(f"# {head}", *lines, sep="\n", file=file)
    return 1 if by_threads or elsewhere else 0


if __name__ == "__main__":
    sys.exit(main())
